//go:build servers

package s3bucket

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/topsail-serving/topsail/test/require"
)

func TestFiles(t *testing.T) {
	endpoint := start(t)
	files, err := OpenFiles("s3://bundles/files?region=us-east-1&endpoint=" + endpoint)
	require.NoError(t, err)
	path := filepath.Join(t.TempDir(), "f")
	for _, text := range []string{"first", "second"} {
		require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
		f, err := os.Open(path)
		require.NoError(t, err)
		err = files.Put(t.Context(), "b", f, int64(len(text)))
		if err == nil {
			err = files.Put(t.Context(), "a", f, 1)
		}
		f.Close()
		require.NoError(t, err)
	}
	var got bytes.Buffer
	if err := files.Get(t.Context(), "b", &got); err != nil || got.String() != "second" {
		t.Errorf("got %q, error %v", got.String(), err)
	}
	if names, err := files.List(t.Context()); err != nil || !slices.Equal(names, []string{"a", "b"}) {
		t.Errorf("listed %v, error %v", names, err)
	}
	if err := files.Delete(t.Context(), "b"); err != nil {
		t.Error(err)
	}
	if err := files.Get(t.Context(), "b", &got); err == nil || !strings.Contains(err.Error(), "b does not exist in bucket bundles") {
		t.Errorf("what was deleted: %v", err)
	}
	none, err := OpenFiles("s3://none?region=us-east-1&endpoint=" + endpoint)
	require.NoError(t, err)
	if _, err := none.List(t.Context()); err == nil || !strings.Contains(err.Error(), `bucket "none" does not exist`) {
		t.Errorf("no bucket: %v", err)
	}
}
