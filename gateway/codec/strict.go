package codec

import (
	"github.com/topsail-serving/topsail/internal/schema"
)

// strictness remembers the first key without a meaning, which is an error unless the body says
// "strict": false.
type strictness struct {
	unknown error
	lenient bool
}

// meets takes a key without a meaning in, whose value is at an offset, of an object in which keys have one.
func (s *strictness) meets(key []byte, at int, keys func() []string) {
	if s.unknown == nil {
		s.unknown = contentError(at, `is unknown%s ("strict": false ignores it)`, schema.DidYouMean(string(key[:min(len(key), longestName)]), keys()))
	}
}

// strict reads the value of "strict".
func (s *strictness) strict(p *parser) error {
	on, err := p.flag()
	s.lenient = !on
	return err
}

// refusal is why the body is refused, or nil.
func (s *strictness) refusal() error {
	if s.lenient {
		return nil
	}
	return s.unknown
}
