//go:build servers

package s3bucket

import (
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/topsail-serving/topsail/serving/bundle"
	"github.com/topsail-serving/topsail/test/contract"
	"github.com/topsail-serving/topsail/test/require"
	"github.com/topsail-serving/topsail/test/servers"
)

// start runs an object store for a test.
func start(t *testing.T) (endpoint string) {
	t.Helper()
	port, err := servers.FreePort()
	require.NoError(t, err)
	server, err := servers.S3(t.TempDir(), port)
	require.NoError(t, err)
	if err := server.Start(t.Context()); err != nil {
		t.Fatal(err, server.LogTail())
	}
	t.Cleanup(server.Stop)
	t.Setenv("AWS_ACCESS_KEY_ID", servers.S3AccessKey)
	t.Setenv("AWS_SECRET_ACCESS_KEY", servers.S3SecretKey)
	return "http://" + server.Addr
}

func open(t *testing.T, text string) *Bucket {
	t.Helper()
	b, err := Open(text)
	require.NoError(t, err)
	return b
}

func TestContract(t *testing.T) {
	endpoint := start(t)
	var n atomic.Int64
	contract.Bundles(t, func(t *testing.T) func() contract.BundleStore {
		prefix := fmt.Sprint("test-", n.Add(1)) // a test each
		return func() contract.BundleStore {
			return open(t, "s3://bundles/"+prefix+"?region=us-east-1&endpoint="+endpoint)
		}
	})
}

// An address lets a node without keys fetch one bundle, until it ends.
func TestAddress(t *testing.T) {
	b := open(t, "s3://bundles?endpoint="+start(t))
	path := filepath.Join(t.TempDir(), "archive")
	require.NoError(t, os.WriteFile(path, []byte("an archive"), 0o600))
	file, err := os.Open(path)
	require.NoError(t, err)
	defer file.Close()
	digest, err := bundle.Digest(file)
	require.NoError(t, err)
	require.NoError(t, b.Put(t.Context(), digest, file, 10))
	fetch := func(url string) (int, string) {
		resp, err := http.Get(url)
		require.NoError(t, err)
		defer resp.Body.Close()
		text, err := io.ReadAll(resp.Body)
		require.NoError(t, err)
		return resp.StatusCode, string(text)
	}
	address, err := b.Address(t.Context(), digest, time.Minute)
	require.NoError(t, err)
	if status, text := fetch(address); status != 200 || text != "an archive" {
		t.Errorf("%d %q", status, text)
	}
	unsigned, _, _ := strings.Cut(address, "?")
	for name, url := range map[string]string{"unsigned": unsigned, "of another": strings.Replace(address, digest[7:17], "0000000000", 1)} {
		if status, _ := fetch(url); status != 403 {
			t.Errorf("%s: %d", name, status)
		}
	}
	brief, err := b.Address(t.Context(), digest, time.Second)
	require.NoError(t, err)
	for end, status := time.Now().Add(20*time.Second), 200; status != 403; time.Sleep(100 * time.Millisecond) {
		if status, _ = fetch(brief); status == 200 && time.Now().After(end) {
			t.Fatal("an address of a second is good after 20")
		}
	}
}
