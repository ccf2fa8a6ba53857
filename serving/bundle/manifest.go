package bundle

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"topsail/serving"
	"topsail/serving/bundle/archive"
)

// Format is the one that this release reads and writes.
const Format = 1

// ManifestName is the manifest's, at the root of the archive and of an unpacked bundle.
const ManifestName = "manifest.json"

// File is what a manifest says about a file.
type File = archive.File

// Manifest describes a bundle.
type Manifest struct {
	Format       int               `json:"format"`
	Runtime      string            `json:"runtime"`                // "python", "sklearn", …, "pmml", "host" or "command"
	Python       string            `json:"python,omitempty"`       // such as "3.11"; not with "pmml" and "command"
	Requirements []string          `json:"requirements,omitempty"` // as pip takes them
	Entry        string            `json:"entry,omitempty"`        // a file or folder of the bundle, or module:callable
	InputType    serving.InputType `json:"input_type,omitzero"`    // 0: the version says it
	InputLength  int               `json:"input_length,omitempty"` // elements of every input; 0: any
	Example      json.RawMessage   `json:"example,omitempty"`      // an input, as clients send it
	Description  string            `json:"description,omitempty"`
	Options      map[string]string `json:"options,omitempty"` // of the runtime
	Files        map[string]File   `json:"files"`             // by name, all but the manifest
	Command      []string          `json:"command,omitempty"` // of the runtime "command"
}

// fields are the names of a manifest's fields.
const fields = "format, runtime, python, requirements, entry, input_type, input_length, example, description, options, files, command"

// ParseManifest reads a manifest and checks it. It says everything that is wrong.
func ParseManifest(text []byte) (*Manifest, error) {
	if len(text) > archive.MaxHead {
		return nil, fmt.Errorf("the manifest has %d bytes, and may have %d", len(text), archive.MaxHead)
	}
	if err := checkKeys(text); err != nil {
		return nil, fmt.Errorf("the manifest is not as JSON has it: %w", err)
	}
	if err := checkFormat(text); err != nil {
		return nil, err
	}
	if err := checkFields(text); err != nil {
		return nil, err
	}
	var m Manifest
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.DisallowUnknownFields() // those of files
	if err := decoder.Decode(&m); err != nil {
		return nil, fmt.Errorf("the manifest cannot be read: %w", err)
	}
	return &m, m.Check()
}

// checkFormat comes first: the manifest of another format may have other fields.
func checkFormat(text []byte) error {
	var m struct {
		Format int `json:"format"`
	}
	if err := json.Unmarshal(text, &m); err != nil {
		return fmt.Errorf("the manifest cannot be read: %w", err)
	}
	if m.Format != Format {
		return fmt.Errorf("the bundle has format %d, and this release of Topsail reads format %d: "+
			"build the bundle with a client of this release, or install the release that the client is of", m.Format, Format)
	}
	return nil
}

// checkFields refuses fields that there are not: a slip would else go unnoticed.
func checkFields(text []byte) error {
	var all map[string]json.RawMessage
	if err := json.Unmarshal(text, &all); err != nil {
		return fmt.Errorf("the manifest cannot be read: %w", err)
	}
	known := strings.Split(fields, ", ")
	for _, name := range slices.Sorted(maps.Keys(all)) {
		if !slices.Contains(known, name) {
			return fmt.Errorf("the manifest has the field %q, which format %d does not know; it knows %s", name, Format, fields)
		}
	}
	return nil
}
