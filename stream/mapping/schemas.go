package mapping

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"
)

// ErrUnavailable is that of a registry that does not answer: what waits for it is to be retried.
var ErrUnavailable = errors.New("the schema registry is unavailable")

// refusedFor is how long it is remembered that there is no use in asking for a schema.
const refusedFor = 10 * time.Second

// schemas are the codecs of a registry's schemas, of which it keeps the last ones. Many goroutines use it.
type schemas struct {
	registry Registry

	mu    sync.Mutex
	known map[int]knownSchema
	ids   []int // of known, the oldest first
}

type knownSchema struct {
	codec   frameCodec
	refused error // why there is no codec
	until   time.Time
}

func newSchemas(registry Registry) *schemas {
	return &schemas{registry: registry, known: map[int]knownSchema{}}
}

// get is the codec of a schema. It fails with ErrUnavailable while that cannot be known.
func (s *schemas) get(ctx context.Context, id int) (frameCodec, error) {
	if found, is := s.look(id, time.Now()); is {
		return found.codec, found.refused
	}
	schema, err := s.registry.Schema(ctx, id)
	var found knownSchema
	switch {
	case err == nil:
		found.codec, found.refused = newCodec(schema)
	case errors.Is(err, ErrUnknownSchema) || errors.Is(err, ErrBadSchema):
		found.refused = err
	default:
		return nil, fmt.Errorf("%w: schema %d: %w", ErrUnavailable, id, err)
	}
	if found.refused != nil {
		found.until = time.Now().Add(refusedFor)
	}
	s.keep(id, found)
	return found.codec, found.refused
}

func (s *schemas) look(id int, now time.Time) (knownSchema, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	found, is := s.known[id]
	return found, is && (found.refused == nil || now.Before(found.until))
}

// keep remembers a schema, and forgets the oldest one where there are too many.
func (s *schemas) keep(id int, found knownSchema) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, is := s.known[id]; !is {
		if len(s.ids) == maxSchemas {
			delete(s.known, s.ids[0])
			s.ids = s.ids[1:]
		}
		s.ids = append(s.ids, id)
	}
	s.known[id] = found
}
