package streams

import (
	"context"
	"slices"
	"time"

	"github.com/topsail-serving/topsail/internal/condition"
	"github.com/topsail-serving/topsail/internal/retry"
	"github.com/topsail-serving/topsail/serving"
	"github.com/topsail-serving/topsail/serving/catalog"
)

// author is the author of announced streams in the audit log.
const author = "stream"

// retryAnnounce is the time between two attempts.
const retryAnnounce = time.Second

// announce puts the streams into the catalog, so that people see them and can suspend them,
// and again whenever one that is served was deleted. Until ctx ends it tries on.
func (s *Set) announce(ctx context.Context) error {
	for _, one := range s.announced {
		s.put(ctx, one)
	}
	missing := make(chan []serving.Stream, 1)
	go func() {
		defer close(missing)
		// It ends with ctx, and fails with nothing else.
		_ = s.Catalog.Watch(ctx, func(cat *serving.Catalog) {
			gone := slices.DeleteFunc(slices.Clone(s.announced), func(one serving.Stream) bool { return cat.Streams[one.Name] != nil })
			if len(gone) > 0 {
				select {
				case missing <- gone:
				case <-ctx.Done():
				}
			}
		})
	}()
	for gone := range missing {
		for _, one := range gone {
			s.put(ctx, one)
		}
	}
	return nil
}

// put announces one stream.
func (s *Set) put(ctx context.Context, one serving.Stream) {
	change := catalog.Signed{Change: catalog.PutStream{Stream: one}, By: serving.Author{Who: author}}
	announcing := condition.Condition{
		Log: s.log.With("stream", one.Name), Begins: "cannot announce a stream, which can be neither listed nor suspended until then; retrying",
	}
	for ctx.Err() == nil {
		_, err := s.Catalog.Apply(ctx, change, 0)
		if err == nil {
			return
		}
		if ctx.Err() == nil {
			announcing.Note(err)
		}
		retry.Sleep(ctx, retryAnnounce)
	}
}
