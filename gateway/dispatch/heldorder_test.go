package dispatch

import (
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/topsail-serving/topsail/serving"
)

// TestByDeadline compares the heap with a plain set.
func TestByDeadline(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var d byDeadline
		var all []*Call
		draw := func() *Call { return all[rapid.IntRange(0, len(all)-1).Draw(t, "which")] }
		at := func() time.Time { return time.Unix(int64(rapid.IntRange(0, 20).Draw(t, "at")), 0) }
		t.Repeat(map[string]func(*rapid.T){
			"push": func(t *rapid.T) {
				c := &Call{until: at(), Input: serving.Input{Data: make([]byte, rapid.IntRange(0, 9).Draw(t, "size"))}}
				d.push(c)
				all = append(all, c)
			},
			"remove": func(t *rapid.T) {
				if len(all) == 0 {
					t.Skip("nothing is held")
				}
				c := draw()
				d.remove(c)
				for i := range all {
					if all[i] == c {
						all = append(all[:i], all[i+1:]...)
						break
					}
				}
			},
			"postpone": func(t *rapid.T) {
				if len(all) == 0 {
					t.Skip("nothing is held")
				}
				d.postpone(draw(), at())
			},
			"": func(t *rapid.T) {
				var bytes int64
				for i, c := range all {
					bytes += c.size()
					if c.until.Before(d.calls[0].until) {
						t.Errorf("question %d is more urgent than the first", i)
					}
					if d.calls[c.place] != c {
						t.Errorf("question %d is not in its place", i)
					}
				}
				if len(d.calls) != len(all) || d.bytes != bytes {
					t.Errorf("%d questions of %d bytes, want %d of %d", len(d.calls), d.bytes, len(all), bytes)
				}
			},
		})
	})
}
