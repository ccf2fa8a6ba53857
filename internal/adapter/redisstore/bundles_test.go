package redisstore

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/topsail-serving/topsail/serving/bundle"
	"github.com/topsail-serving/topsail/test/contract"
	"github.com/topsail-serving/topsail/test/require"
)

func TestBundlesContract(t *testing.T) {
	contract.Bundles(t, func(t *testing.T) func() contract.BundleStore {
		cfg := config(t)
		return func() contract.BundleStore { return open(t, cfg).Bundles(64 << 20) }
	})
}

// archive is a file of n bytes and its digest.
func archive(t *testing.T, n int) (file *os.File, digest string) {
	t.Helper()
	data := bytes.Repeat([]byte{byte(n)}, n)
	digest, err := bundle.Digest(bytes.NewReader(data))
	require.NoError(t, err)
	path := filepath.Join(t.TempDir(), "archive")
	require.NoError(t, os.WriteFile(path, data, 0o600))
	if file, err = os.Open(path); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { file.Close() })
	return file, digest
}

func TestBundlesAreBounded(t *testing.T) {
	b := open(t, config(t)).Bundles(3 << 20)
	first, one := archive(t, 2<<20)
	second, two := archive(t, 1<<20+1)
	require.NoError(t, b.Put(t.Context(), one, first, 2<<20))
	if err := b.Put(t.Context(), two, second, 1<<20+1); !errors.Is(err, bundle.ErrNoRoom) || !strings.Contains(err.Error(), "web.bundles") {
		t.Errorf("error is %v", err)
	}
	if err := b.Put(t.Context(), one, first, 2<<20); err != nil {
		t.Errorf("one that is there: %v", err)
	}
	require.NoError(t, b.Delete(t.Context(), one))
	if err := b.Put(t.Context(), two, second, 1<<20+1); err != nil {
		t.Error(err)
	}
}

// What an upload left that broke off is no bundle, and goes with a later one.
func TestBundlesThatBrokeOff(t *testing.T) {
	s := open(t, config(t))
	b := s.Bundles(4 << 20)
	file, digest := archive(t, 3<<20)
	hex := strings.TrimPrefix(digest, "sha256:")
	if _, err := s.run(t.Context(), s.scripts.reserve, []string{s.keys.bundles}, hex, 3<<20, 4<<20); err != nil {
		t.Fatal(err)
	}
	require.NoError(t, b.write(t.Context(), hex, file, 3<<20))
	if list, err := b.List(t.Context()); err != nil || len(list) > 0 {
		t.Errorf("the list is %v, error %v", list, err)
	}
	if _, _, err := b.Open(t.Context(), digest); !errors.Is(err, bundle.ErrNotStored) {
		t.Errorf("error is %v", err)
	}
	other, another := archive(t, 2<<20)
	if err := b.Put(t.Context(), another, other, 2<<20); !errors.Is(err, bundle.ErrNoRoom) {
		t.Errorf("it may still be on its way, and the error is %v", err)
	}
	long := time.Now().Add(-2 * abandoned).UnixMicro()
	require.NoError(t, s.client.HSet(t.Context(), s.keys.bundles, hex, fmt.Sprintf("%d %d coming", 3<<20, long)).Err())
	require.NoError(t, b.Put(t.Context(), another, other, 2<<20))
	if n, err := s.client.Exists(t.Context(), s.keys.bundle(hex, 0), s.keys.bundle(hex, 2)).Result(); err != nil || n > 0 {
		t.Errorf("%d pieces are left, error %v", n, err)
	}
}

func TestSecretIsShared(t *testing.T) {
	cfg := config(t)
	first, err := open(t, cfg).Secret(t.Context(), "bundles", "one")
	second, errSecond := open(t, cfg).Secret(t.Context(), "bundles", "two")
	if err != nil || errSecond != nil || first != "one" || second != "one" {
		t.Errorf("%q, %q, errors %v, %v", first, second, err, errSecond)
	}
}

func TestUnusedBundlesAreRemembered(t *testing.T) {
	cfg := config(t)
	s, other := open(t, cfg), open(t, cfg)
	first, err := s.UnusedBundles(t.Context(), []string{"a", "b"})
	if err != nil || len(first) != 2 || time.Since(first["a"]).Abs() > time.Minute {
		t.Fatalf("%v, error %v", first, err)
	}
	if err := s.client.HSet(t.Context(), s.keys.unused, "a", 1000).Err(); err != nil { // long ago
		t.Fatal(err)
	}
	second, err := other.UnusedBundles(t.Context(), []string{"a", "c"})
	if err != nil || len(second) != 2 || !second["a"].Equal(time.Unix(1000, 0)) || second["c"].IsZero() {
		t.Errorf("%v, error %v", second, err)
	}
	if none, err := s.UnusedBundles(t.Context(), nil); err != nil || len(none) > 0 {
		t.Errorf("%v, error %v", none, err)
	}
}
