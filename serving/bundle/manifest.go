package bundle

import (
	"cmp"
	"encoding/json"
	"fmt"
	"strconv"

	"github.com/topsail-serving/topsail/internal/schema"
	"github.com/topsail-serving/topsail/serving"
	"github.com/topsail-serving/topsail/serving/bundle/archive"
)

// Format is the one that this release reads and writes.
const Format = 1

// ManifestName is the manifest's, at the root of the archive and of an unpacked bundle.
const ManifestName = "manifest.json"

// File is what a manifest says about a file.
type File = archive.File

// Manifest describes a bundle.
type Manifest struct {
	Format       int                `json:"format"`
	Runtime      string             `json:"runtime"`                // "python", "sklearn", …, "pmml", "host" or "command"
	Python       string             `json:"python,omitempty"`       // such as "3.11"; not with "pmml" and "command"
	Requirements []string           `json:"requirements,omitempty"` // as pip takes them
	Entry        string             `json:"entry,omitempty"`        // a file or folder of the bundle, or module:callable
	InputType    serving.InputType  `json:"input_type,omitzero"`    // 0: the version says it
	InputLength  int                `json:"input_length,omitempty"` // elements of every input; 0: any
	Signature    *serving.Signature `json:"signature,omitempty"`    // named inputs and outputs
	Example      json.RawMessage    `json:"example,omitempty"`      // an input, as clients send it
	Description  string             `json:"description,omitempty"`
	Options      map[string]string  `json:"options,omitempty"` // of the runtime
	Files        map[string]File    `json:"files"`             // by name, all but the manifest
	Command      []string           `json:"command,omitempty"` // of the runtime "command"
}

// ParseManifest reads a manifest and checks it. It says everything that is wrong.
func ParseManifest(text []byte) (*Manifest, error) {
	if len(text) > archive.MaxHead {
		return nil, fmt.Errorf("the manifest has %d bytes; at most %d are allowed", len(text), archive.MaxHead)
	}
	tree, err := schema.ParseJSON(text)
	if err != nil {
		return nil, fmt.Errorf("the manifest cannot be read: %w", err)
	}
	if err := checkFormat(tree); err != nil {
		return nil, err
	}
	var m Manifest
	d := schema.Decoder{Partial: true} // others have written nulls
	if problems := d.Decode("", tree, &m); len(problems) > 0 {
		return nil, fmt.Errorf("the manifest cannot be read: %w", problems[0])
	}
	return &m, m.Check()
}

// checkFormat comes first: the manifest of another format may have other fields.
func checkFormat(tree any) error {
	manifest, ok := tree.(map[string]any)
	format, _ := manifest["format"].(json.Number)
	if ok && format.String() != strconv.Itoa(Format) {
		return fmt.Errorf("the bundle has format %.40s, and this release of Topsail reads format %d: "+
			"build the bundle with a client of this release, or install the release of the client", cmp.Or(format.String(), "none"), Format)
	}
	return nil
}
