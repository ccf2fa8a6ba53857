package models

import (
	"maps"
	"testing"
	"testing/synctest"

	"github.com/topsail-serving/topsail/serving"
	"github.com/topsail-serving/topsail/serving/catalog"
)

// TestStreamsAreMapped to apps, one of which comes in the same batch.
func TestStreamsAreMapped(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.app("red-wine")
		w.apply(catalog.PutStream{Stream: serving.Stream{Name: "wine", Kind: serving.DataStream, App: "red-wine", Input: []string{"records"}, Output: "results", DeadLetter: "lost"}})
		w.run(nil)
		w.write(text(`{"uuid": "a", "stream": {"name": "wine", "apps": {"red": "red-wine", "white": "tasting", "all": "red-wine, tasting"}}}`), asks("b", "[]"))
		w.settle()
		w.want(outcome{"a", Configured}, outcome{"b", Configured})
		if got := w.store.Catalog().Streams["wine"].Apps; !maps.Equal(got, map[string]string{"red": "red-wine", "white": "tasting", "all": "red-wine, tasting"}) {
			t.Errorf("the map is %v", got)
		}
		u := Update{UUID: "c", Mapping: &StreamChange{Name: "wine", Apps: map[string]string{"red": "", "rose": "red-wine"}}}
		w.write(serving.StreamMessage{Stream: "in", Value: u.AppendProtobuf(nil)}, text(`{"uuid": "d", "stream": {"name": "wine", "apps": {"rose": null}}}`))
		w.settle()
		if got := w.store.Catalog().Streams["wine"].Apps; !maps.Equal(got, map[string]string{"white": "tasting", "all": "red-wine, tasting"}) {
			t.Errorf("the map is %v", got)
		}
		w.apply(catalog.PutStream{Stream: serving.Stream{Name: "other", Kind: serving.ModelStream, Input: []string{"records"}, Output: "results", DeadLetter: "lost"}})
		w.write(text(`{"uuid": "e", "stream": {"name": "other", "apps": {"rose": "tasting"}}}`))
		w.settle()
		if got := w.outcomesOf(); got[len(got)-1].id != "e" {
			t.Errorf("%q", got)
		}
	})
}
