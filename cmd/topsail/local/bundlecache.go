package local

import (
	"context"
	"os"
	"path/filepath"

	"github.com/topsail-serving/topsail/containers/bundlecache"
	"github.com/topsail-serving/topsail/containers/launch"
)

// openBundleCache opens the folder of the bundles that hosts load, which come from that of
// management.
func openBundleCache(dataDir string, path func(digest string) string) (*bundlecache.Cache, error) {
	client, err := launch.Client("", "")
	if err != nil {
		return nil, err
	}
	of := func(_ context.Context, digest string) ([]string, error) { return []string{path(digest)}, nil }
	return bundlecache.Open(filepath.Join(dataDir, "shelf"), bundleCacheBytes, bundlecache.Source{Of: of, Client: client}, os.Stdout)
}
