package models

import (
	"bytes"
	"testing"
	"time"
)

func TestOrder(t *testing.T) {
	later := time.Unix(1e9, 0)
	for _, one := range []struct {
		o, p  origin
		after bool
	}{
		{origin{stream: "a", place: "0/10"}, origin{stream: "a", place: "0/9"}, true},
		{origin{stream: "a", place: "0/9"}, origin{stream: "a", place: "0/10"}, false},
		{origin{stream: "a", place: "1718-10"}, origin{stream: "a", place: "1718-9"}, true},
		{origin{stream: "a", place: "9-0"}, origin{stream: "a", place: "10-0"}, false},
		{origin{stream: "a", place: "0/1", sequence: 2}, origin{stream: "a", place: "0/9", sequence: 1}, true},
		{origin{stream: "a", place: "0/1", sequence: 2}, origin{stream: "a", place: "0/9"}, false}, // the other has none
		{origin{stream: "a", place: "0/1", at: later}, origin{stream: "a", place: "1/9"}, true},    // another partition
		{origin{stream: "a", place: "0/1", at: later}, origin{stream: "b", place: "0/9"}, true},    // another stream
		{origin{stream: "a", place: "odd", at: later}, origin{stream: "a", place: "odd"}, true},
	} {
		if one.o.after(one.p) != one.after || one.after && one.p.after(one.o) {
			t.Errorf("%+v after %+v: %v", one.o, one.p, !one.after)
		}
	}
}

// FuzzOrigin holds that what is in labels makes nothing panic, and that an origin comes back.
func FuzzOrigin(f *testing.F) {
	f.Add("models", "in", "3/1042", "abc", uint64(7), true)
	f.Add("models", "{a}in", "1718-0", "abc", uint64(0), false)
	f.Fuzz(func(t *testing.T, job, stream, place, content string, sequence uint64, kept bool) {
		o := origin{job: job, stream: stream, place: place, content: content, sequence: sequence, kept: kept}
		got, ok := parseOrigin(o.labels())
		if !ok || bytes.ContainsAny([]byte(place), " ") {
			return
		}
		if got.at = o.at; got != o {
			t.Fatalf("%+v came back as %+v", o, got)
		}
		if o.after(o) {
			t.Fatalf("%+v came after itself", o)
		}
	})
}
