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
	"github.com/topsail-serving/topsail/test/servers"
)

// start runs an object store for a test.
func start(t *testing.T) (endpoint string) {
	t.Helper()
	port, err := servers.FreePort()
	if err != nil {
		t.Fatal(err)
	}
	server, err := servers.S3(t.TempDir(), port)
	if err != nil {
		t.Fatal(err)
	}
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
	if err != nil {
		t.Fatal(err)
	}
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
	if err := os.WriteFile(path, []byte("an archive"), 0o600); err != nil {
		t.Fatal(err)
	}
	file, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	digest, err := bundle.Digest(file)
	if err != nil {
		t.Fatal(err)
	}
	if err := b.Put(t.Context(), digest, file, 10); err != nil {
		t.Fatal(err)
	}
	fetch := func(url string) (int, string) {
		resp, err := http.Get(url)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		text, err := io.ReadAll(resp.Body)
		if err != nil {
			t.Fatal(err)
		}
		return resp.StatusCode, string(text)
	}
	address, err := b.Address(t.Context(), digest, time.Minute)
	if err != nil {
		t.Fatal(err)
	}
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
	if err != nil {
		t.Fatal(err)
	}
	for end, status := time.Now().Add(20*time.Second), 200; status != 403; time.Sleep(100 * time.Millisecond) {
		if status, _ = fetch(brief); status == 200 && time.Now().After(end) {
			t.Fatal("an address of a second is good after 20")
		}
	}
}
