package intact

import (
	"crypto/sha256"
	"encoding/hex"
	"os"
	"path/filepath"

	"github.com/topsail-serving/topsail/serving/bundle"
)

// Unpacked is what the manifest of an unpacked bundle says of its files, or nil. It stands in for the
// record, which earlier releases have not made.
func Unpacked(dir string) *Record {
	text, err := os.ReadFile(filepath.Join(dir, bundle.ManifestName))
	if err != nil {
		return nil
	}
	m, err := bundle.ParseManifest(text)
	if err != nil {
		return nil
	}
	own := sha256.Sum256(text)
	r := &Record{Files: map[string]File{bundle.ManifestName: {SHA256: hex.EncodeToString(own[:]), Size: int64(len(text))}}}
	for name, f := range m.Files {
		r.Files[name] = File{SHA256: f.SHA256, Size: f.Size}
	}
	return r
}
