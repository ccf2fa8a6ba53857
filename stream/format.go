package stream

import (
	"fmt"
	"mime"
	"strings"
)

// Format is how messages are written.
type Format uint8

const (
	AnyFormat Format = iota // as the header content-type says, else as the first byte does
	Protobuf                // proto/serving.proto
	JSON                    // the members of the predict API
)

var formatNames = [...]string{"any", "protobuf", "json"}

func (f Format) String() string {
	if int(f) < len(formatNames) {
		return formatNames[f]
	}
	return fmt.Sprintf("Format(%d)", uint8(f))
}

// MarshalText and UnmarshalText let a Format stand in JSON and TOML by name.
func (f Format) MarshalText() ([]byte, error) { return []byte(f.String()), nil }

func (f *Format) UnmarshalText(b []byte) error {
	for i, name := range formatNames {
		if string(b) == name {
			*f = Format(i)
			return nil
		}
	}
	return fmt.Errorf("format %q is unknown: use any, protobuf or json", b)
}

// ContentType is what the header content-type of such a message says.
func (f Format) ContentType() string {
	if f == JSON {
		return "application/json"
	}
	return "application/x-protobuf"
}

// HeaderContentType is the header that says how a message is written.
const HeaderContentType = "content-type"

// FormatOf is how a message is written that has this content type, or none, and this value.
func FormatOf(contentType string, value []byte) (Format, error) {
	if contentType == "" {
		if len(value) > 0 && value[0] == '{' { // no protobuf message begins like this
			return JSON, nil
		}
		return Protobuf, nil
	}
	media, _, err := mime.ParseMediaType(contentType)
	switch {
	case err != nil:
	case media == "application/json" || strings.HasSuffix(media, "+json"):
		return JSON, nil
	case media == "application/x-protobuf" || media == "application/protobuf" || media == "application/vnd.google.protobuf":
		return Protobuf, nil
	}
	return AnyFormat, fmt.Errorf("the content-type %.100q is not known: use application/x-protobuf or application/json", contentType)
}
