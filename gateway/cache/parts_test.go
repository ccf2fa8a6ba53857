package cache

import (
	"testing"

	"github.com/topsail-serving/topsail/serving"
)

// What cannot be joined keeps no part that its reader has: a long answer would fill the memory.
func TestPartsAreKeptForThoseThatMayJoin(t *testing.T) {
	c, w := New(1<<20), make(Waiter, 1)
	shared, _ := c.Join(numbered(1), 0, w)
	for name, tt := range map[string]struct {
		flight *Flight
		kept   int
	}{
		"shared": {shared, 3},
		"own":    {c.Own(numbered(2), w), 0},
		"alone":  {c.Alone(w), 0},
	} {
		r := tt.flight.Stream(w, func() {})
		for range 3 {
			tt.flight.Part(&serving.Output{JSON: []byte(`"a"`)})
		}
		if n := len(r.parts.list); n != 3 {
			t.Errorf("%s: keeps %d parts that are not read yet, want 3", name, n)
		}
		for range 3 {
			if r.Next() == nil {
				t.Fatalf("%s: a part is missing", name)
			}
		}
		if n := len(r.parts.list); n != tt.kept || r.Next() != nil {
			t.Errorf("%s: keeps %d parts, want %d", name, n, tt.kept)
		}
	}
}
