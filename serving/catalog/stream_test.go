package catalog_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/topsail-serving/topsail/serving"
	"github.com/topsail-serving/topsail/serving/catalog"
)

func TestStreamErrors(t *testing.T) {
	good := serving.Stream{Name: "wine", Kind: serving.DataStream, App: "wine", Input: []string{"in"}, Output: "out", DeadLetter: "dead"}
	cat := must(t, &serving.Catalog{}, catalog.PutStream{Stream: good}, catalog.SuspendStream{Name: "wine"})
	refused := func(change catalog.Change, kind error, words string) {
		t.Helper()
		next, err := catalog.Apply(cat, change, 0)
		if !errors.Is(err, kind) || next != nil || !strings.Contains(err.Error(), words) {
			t.Errorf("got %v and error %v, want %v with %q", next, err, kind, words)
		}
	}
	for words, change := range map[string]func(*serving.Stream){
		"stream name":      func(s *serving.Stream) { s.Name = "a b" },
		"kind \"other\"":   func(s *serving.Stream) { s.Kind = "other" },
		"app name":         func(s *serving.Stream) { s.App = "/" },
		"1 to 1000 inputs": func(s *serving.Stream) { s.Input = nil },
		"need names":       func(s *serving.Stream) { s.Output = "" },
		"of 1 to 1024":     func(s *serving.Stream) { s.Input = []string{strings.Repeat("x", 1025)} },
	} {
		s := good
		change(&s)
		refused(catalog.PutStream{Stream: s}, catalog.ErrInvalid, words)
	}
	refused(catalog.SuspendStream{Name: "wine", Suspension: serving.Suspension{Reason: strings.Repeat("x", 1025)}}, catalog.ErrInvalid, "reason of a suspension")
	refused(catalog.DeleteStream{Name: "wine"}, catalog.ErrInvalid, "resume it first")
	for _, change := range []catalog.Change{catalog.DeleteStream{Name: "none"}, catalog.SuspendStream{Name: "none"}, catalog.ResumeStream{Name: "none"}} {
		refused(change, catalog.ErrNotFound, `stream "none" does not exist`)
	}
	full := *cat
	full.Streams = map[string]*serving.Stream{}
	for i := range serving.MaxStreams {
		s := good
		s.Name = fmt.Sprint(i)
		full.Streams[s.Name] = &s
	}
	cat = &full
	refused(catalog.PutStream{Stream: good}, catalog.ErrInvalid, "there are 1000 streams")
	must(t, cat, catalog.SuspendStream{Name: "7"})
}
