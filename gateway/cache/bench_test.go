package cache

import (
	"testing"

	"github.com/topsail-serving/topsail/serving"
)

func BenchmarkGet(b *testing.B) {
	c := New(1 << 24)
	defer c.Close()
	for i := range 1000 {
		c.Put(numbered(i), text(b, 100))
	}
	run := func(name string, body func(i int)) {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				body(i)
			}
		})
	}
	run("hit", func(i int) {
		if c.Get(numbered(i%1000), 0) == nil {
			b.Fatal("missed")
		}
	})
	run("hit with a TTL", func(i int) {
		if c.Get(numbered(i%1000), serving.MaxSLO) == nil {
			b.Fatal("missed")
		}
	})
	run("miss", func(i int) {
		if c.Get(numbered(-1-i), 0) != nil {
			b.Fatal("hit")
		}
	})
}

// BenchmarkFlight is what the cache costs a question that is not in it.
func BenchmarkFlight(b *testing.B) {
	c, w, out := New(1<<24), make(Waiter, 1), text(b, 100)
	defer c.Close()
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		k := numbered(i)
		c.Get(k, 0)
		f, _ := c.Join(k, 0, w)
		c.Get(k, 0)
		f.Land(out, nil)
		<-w
	}
}

func BenchmarkKey(b *testing.B) {
	exact, rounding := NewKeyer(definition("model", "1"), 0), NewKeyer(definition("model", "1"), 0.01)
	small, large := doubles(make([]float64, 13)...), floats(make([]float32, 784)...)
	for _, bench := range []struct {
		name  string
		keyer Keyer
		in    serving.Input
		salt  string
	}{
		{"13 doubles", exact, small, ""},
		{"13 doubles, salted", exact, small, "a-user"},
		{"13 doubles, rounded", rounding, small, ""},
		{"784 floats", exact, large, ""},
		{"784 floats, rounded", rounding, large, ""},
	} {
		b.Run(bench.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				_ = bench.keyer.Key(bench.in, bench.salt)
			}
		})
	}
}
