package access

import (
	"bytes"
	"testing"

	"github.com/topsail-serving/topsail/test/require"
)

func TestDigests(t *testing.T) {
	f := newFolder(t)
	path := f.write("keys", "ann:key-of-ann-0123456789\nann:other-of-ann-0123456789\nbob:key-of-bob-0123456789\n")
	keys, err := KeysFile(path, nil)
	require.NoError(t, err)
	name, digest, ok := keys.Find([]byte("key-of-ann-0123456789"))
	if name != "ann" || !ok {
		t.Fatalf("found %q, %v", name, ok)
	}
	known := func(name string) bool {
		for _, d := range keys.Digests(name) {
			if bytes.Equal(d, digest) {
				return true
			}
		}
		return false
	}
	if !known("ann") || known("bob") || len(keys.Digests("ann")) != 2 || len(keys.Digests("none")) != 0 {
		t.Error("a digest is not that of its name")
	}
	for _, wrong := range []string{"", "key-of-ann-012345678", "short", string(make([]byte, 300))} {
		if _, _, ok := keys.Find([]byte(wrong)); ok {
			t.Errorf("found %q", wrong)
		}
	}
	again, err := KeysFile(path, nil)
	require.NoError(t, err)
	if _, other, _ := again.Find([]byte("key-of-ann-0123456789")); bytes.Equal(other, digest) {
		t.Error("two processes have the same digest")
	}
	f.write("keys", "bob:key-of-bob-0123456789\n")
	keys.file.age()
	if known("ann") {
		t.Error("a key that is gone still has a digest")
	}
	var none *Keys
	if _, _, ok := none.Find([]byte("key-of-ann-0123456789")); ok || none.Digests("ann") != nil {
		t.Error("no keys have a key")
	}
}

func TestShown(t *testing.T) {
	for _, tt := range [][3]string{
		{"key", "", "key"}, {"key", "Bearer other", "key"}, {"", "Bearer key", "key"}, {"", "bearer  key ", "key"}, {"", "Basic key", ""}, {"", "", ""},
	} {
		if got := string(Shown([]byte(tt[0]), []byte(tt[1]))); got != tt[2] {
			t.Errorf("%q and %q show %q", tt[0], tt[1], got)
		}
	}
}
