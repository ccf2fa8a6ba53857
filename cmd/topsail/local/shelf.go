package local

import (
	"context"
	"os"
	"path/filepath"

	"topsail/containers/launch"
	"topsail/containers/shelf"
)

// openShelf opens the folder of the bundles that hosts load, which come from that of
// management.
func openShelf(dataDir string, path func(digest string) string) (*shelf.Shelf, error) {
	client, err := launch.Client("", "")
	if err != nil {
		return nil, err
	}
	of := func(_ context.Context, digest string) ([]string, error) { return []string{path(digest)}, nil }
	return shelf.Open(filepath.Join(dataDir, "shelf"), shelfBytes, shelf.Source{Of: of, Client: client}, os.Stdout)
}
