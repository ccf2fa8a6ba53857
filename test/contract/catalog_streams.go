package contract

import (
	"slices"
	"time"

	"github.com/topsail-serving/topsail/serving"
	"github.com/topsail-serving/topsail/serving/catalog"
)

// streams announces streams, and suspends and resumes one, also over restarts.
func (s suite) streams() {
	since := time.Date(2026, 1, 2, 3, 4, 5, 600, time.UTC)
	data := serving.Stream{Name: "wine", Kind: serving.DataStream, App: "a", Input: []string{"in", "more"}, Output: "out", DeadLetter: "dead"}
	models := serving.Stream{Name: "wine.models", Kind: serving.ModelStream, Input: []string{"models"}, Output: "done", DeadLetter: "dead"}
	suspend := func(name, reason string) catalog.SuspendStream {
		return catalog.SuspendStream{Name: name, Suspension: serving.Suspension{Since: since, By: "ann", Reason: reason}}
	}

	s.refuse(catalog.ErrNotFound, suspend("wine", ""))
	s.refuse(catalog.ErrInvalid, catalog.PutStream{Stream: serving.Stream{Name: "bad name"}})
	s.apply(catalog.PutStream{Stream: data})
	s.apply(catalog.PutStream{Stream: models})
	s.keep(catalog.PutStream{Stream: data})
	data.Input[0] = "changed by the caller"
	s.keep(catalog.ResumeStream{Name: "wine"})
	s.apply(suspend("wine.models", "the models are bad"))
	s.keep(suspend("wine.models", "the models are bad"))
	s.refuse(catalog.ErrInvalid, catalog.DeleteStream{Name: "wine.models"})
	s.refuse(catalog.ErrNotFound, catalog.MapStream{Name: "beer"})
	s.refuse(catalog.ErrInvalid, catalog.MapStream{Name: "wine", Apps: map[string]string{"red": "no app"}})
	s.refuse(catalog.ErrInvalid, catalog.MapStream{Name: "wine.models", Apps: map[string]string{"red": "a"}})
	s.apply(catalog.MapStream{Name: "wine", Apps: map[string]string{"red": "a"}})
	s.keep(catalog.MapStream{Name: "wine", Apps: map[string]string{"red": "a"}})
	s.keep(catalog.PutStream{Stream: serving.Stream{Name: "wine", Kind: serving.DataStream, App: "a", Input: []string{"in", "more"}, Output: "out", DeadLetter: "dead"}})
	s.apply(catalog.PutApp{App: app("a")}) // which leaves them alone

	s.store = s.reopen()
	cat := s.store.Catalog()
	if got := cat.Streams["wine"]; len(cat.Streams) != 2 || got.Suspension != nil || got.Kind != serving.DataStream || !slices.Equal(got.Input, []string{"in", "more"}) || got.App != "a" || len(got.Apps) != 1 || got.Apps["red"] != "a" {
		s.Fatalf("got %+v", cat.Streams["wine"])
	}
	if got := cat.Streams["wine.models"].Suspension; got == nil || *got != (serving.Suspension{Since: since, By: "ann", Reason: "the models are bad"}) {
		s.Fatalf("got %+v", got)
	}

	models.Output = "elsewhere"
	if got := s.apply(catalog.PutStream{Stream: models}).Streams["wine.models"]; got.Suspension == nil || got.Output != "elsewhere" {
		s.Fatalf("announced again it is %+v", got)
	}
	later := suspend("wine.models", "for another reason")
	later.Suspension.Since = since.Add(time.Hour)
	if got := s.apply(later).Streams["wine.models"].Suspension; !got.Since.Equal(since) || got.Reason != "for another reason" {
		s.Fatalf("suspended again it is %+v", got)
	}
	s.apply(catalog.ResumeStream{Name: "wine.models"})
	s.apply(catalog.DeleteStream{Name: "wine"})
	s.refuse(catalog.ErrNotFound, catalog.DeleteStream{Name: "wine"})
	s.store = s.reopen()
	if cat := s.store.Catalog(); len(cat.Streams) != 1 || cat.Streams["wine.models"].Suspension != nil {
		s.Fatalf("got %+v", cat.Streams)
	}
}
