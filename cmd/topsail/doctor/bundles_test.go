package doctor

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/topsail-serving/topsail/cmd/topsail/config"
	"github.com/topsail-serving/topsail/internal/check"
	"github.com/topsail-serving/topsail/test/require"
)

func TestBundles(t *testing.T) {
	for name, test := range map[string]struct {
		damage func(path string) error
		want   check.State
		says   string
	}{
		"whole":      {func(string) error { return nil }, check.OK, "2 of 2"},
		"flipped":    {func(path string) error { return os.WriteFile(path, []byte("the archivf"), 0o600) }, check.Failed, "1 of 2"},
		"cut":        {func(path string) error { return os.Truncate(path, 4) }, check.Failed, "1 of 2"},
		"emptied":    {func(path string) error { return os.Truncate(path, 0) }, check.Failed, "1 of 2"},
		"removed":    {os.Remove, check.OK, "1 of 1"},
		"unreadable": {func(path string) error { return errors.Join(os.Remove(path), os.Mkdir(path, 0o700)) }, check.Failed, "cannot be read"},
		"stranger":   {func(path string) error { return os.WriteFile(path+".old", nil, 0o600) }, check.OK, "2 of 2"},
	} {
		dir := t.TempDir()
		var path string
		for _, text := range []string{"another archive", "the archive"} {
			path = filepath.Join(dir, fmt.Sprintf("%x.zip", sha256.Sum256([]byte(text))))
			require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
		}
		require.NoError(t, test.damage(path))
		found := bundles(t.Context(), dir)
		if len(found) != 1 || found[0].State != test.want || !strings.Contains(found[0].Detail, test.says) {
			t.Fatalf("%s: got %+v", name, found)
		}
		if named := strings.Contains(found[0].Detail, filepath.Base(path)); named != (test.want == check.Failed) {
			t.Errorf("%s: got %+v", name, found)
		}
		late, cancel := context.WithTimeout(t.Context(), reserve/2)
		defer cancel()
		if found := bundles(late, dir); len(found) != 1 || name == "whole" && !strings.Contains(found[0].Detail, "0 of 2") {
			t.Errorf("without time: got %+v", found)
		}
	}
	if found := bundles(t.Context(), filepath.Join(t.TempDir(), "none")); found != nil {
		t.Errorf("of no folder: got %+v", found)
	}
}

func TestBundleFolder(t *testing.T) {
	for at, want := range map[string]string{"": "/data/bundles", "/mnt/b": "/mnt/b", "redis": "", "s3://b/p?endpoint=x": ""} {
		var cfg config.Config
		cfg.DataDir, cfg.Web.Bundles = "/data", at
		if got := bundleFolder(&cfg); got != want {
			t.Errorf("%q: got %q, want %q", at, got, want)
		}
	}
	if check.Within <= reserve+time.Second {
		t.Error("there is no time to compare bundles")
	}
}
