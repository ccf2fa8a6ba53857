package describe

import (
	"encoding/base64"
	"strconv"

	"github.com/topsail-serving/topsail/gateway/codec"
	"github.com/topsail-serving/topsail/serving"
)

const (
	// maxExample is from how many bytes on an app's example is left out.
	maxExample = 16 << 10
	// maxMade is of how many elements an example is made at the most.
	maxMade = 1024
)

// example is an input as JSON: the app's own, if that is one, or else one that is made up. It
// is nil where it would be too long.
func (o *operations) example() []byte {
	if own := o.App.Example; own != "" && len(own) <= maxExample && o.shape.takes(own) {
		return []byte(own)
	}
	if o.shape.length > maxMade {
		return nil
	}
	return o.shape.made()
}

// takes says whether a text is an input of this shape.
func (s shape) takes(text string) bool {
	r, err := codec.DecodePredict([]byte(`{"input":`+text+`}`), &serving.App{InputType: s.of, Signature: s.signature()}, 1)
	return err == nil && (s.length == 0 || r.Input.Len() == s.length)
}

// made is an input of this shape.
func (s shape) made() []byte {
	n := s.length
	switch s.of {
	case serving.Tensors:
		return s.madeTensors()
	case serving.Strings:
		return []byte(`"a text"`)
	case serving.Chat:
		return []byte(`{"messages":[{"role":"user","content":"Hello"}]}`)
	case serving.Bytes:
		if n == 0 {
			n = 3
		}
		return []byte(`"` + base64.StdEncoding.EncodeToString(make([]byte, n)) + `"`)
	}
	if n == 0 {
		n = 2
	}
	b := []byte{'['}
	for i := range n {
		if i > 0 {
			b = append(b, ',')
		}
		if b = strconv.AppendInt(b, int64(i+1), 10); s.of != serving.Ints {
			b = append(b, ".5"...)
		}
	}
	return append(b, ']')
}
