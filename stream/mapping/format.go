package mapping

import (
	"fmt"
	"slices"
	"strings"
)

// Format is how the values of a topic are written.
type Format uint8

const (
	NoFormat Format = iota
	JSON
	Protobuf
	Avro
	Bytes
	Text
)

var formatNames = []string{"", "json", "protobuf", "avro", "bytes", "text"}

func (f Format) String() string {
	if int(f) < len(formatNames) {
		return formatNames[f]
	}
	return fmt.Sprintf("Format(%d)", uint8(f))
}

// MarshalText and UnmarshalText let a Format stand in TOML by name.
func (f Format) MarshalText() ([]byte, error) { return []byte(f.String()), nil }

func (f *Format) UnmarshalText(b []byte) error {
	i := slices.Index(formatNames, string(b))
	if i < 1 {
		return fmt.Errorf("format %q is unknown: use one of %s", b, strings.Join(formatNames[1:], ", "))
	}
	*f = Format(i)
	return nil
}

// hasSchema says whether values of the format can be read only with a schema.
func (f Format) hasSchema() bool { return f == Protobuf || f == Avro }

// hasPaths says whether values of the format have parts.
func (f Format) hasPaths() bool { return f != Bytes && f != Text }

// contentType is what the header content-type of such a value says.
func (f Format) contentType() string {
	switch f {
	case Protobuf:
		return "application/x-protobuf"
	case Avro:
		return "application/avro"
	case Bytes:
		return "application/octet-stream"
	case Text:
		return "text/plain; charset=utf-8"
	}
	return "application/json"
}
