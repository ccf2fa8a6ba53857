package mapping

import (
	"strings"

	"github.com/topsail-serving/topsail/serving"
)

// Source is where in a record a value is: at a path in its value, in a header, or in its key.
type Source struct {
	path   Path
	header string
	key    bool
}

const (
	headerSource = "header:"
	keySource    = "key:"
)

// ParseSource reads "header:NAME", "key:" or a path.
func ParseSource(text string) (Source, error) {
	if name, is := strings.CutPrefix(text, headerSource); is && name != "" {
		return Source{header: name}, nil
	}
	if text == keySource {
		return Source{key: true}, nil
	}
	path, err := ParsePath(text)
	return Source{path: path}, err
}

// String is the source as people write it.
func (s Source) String() string {
	switch {
	case s.header != "":
		return headerSource + s.header
	case s.key:
		return keySource
	}
	return s.path.String()
}

// of is the value of a record whose own value is decoded, and whether there is one.
func (s Source) of(r *serving.StreamRecord, tree any) (value any, found bool) {
	switch {
	case s.header != "":
		for _, h := range r.Headers {
			if h.Name == s.header {
				value, found = h.Value, true
			}
		}
		return value, found
	case s.key:
		return r.Key, len(r.Key) > 0
	}
	return s.path.Of(tree)
}
