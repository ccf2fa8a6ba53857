package batch

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/topsail-serving/topsail/serving"
	"github.com/topsail-serving/topsail/sidecar/queue"
)

// grown is the size that the default sizer has after so many full batches of inputs of some bytes, all of which it
// would have time for.
func grown(s Sizer, p *Profile, batches, bytes int, took func(n int) time.Duration) int {
	now := time.Now()
	for range batches {
		n := s.Size()
		t := took(n)
		now = now.Add(t)
		p.Observe(queue.Load{N: n, Bytes: n * bytes}, t, now)
		s.Observe(n, t, time.Hour, true)
	}
	return s.Size()
}

// Batches of large inputs grow while that makes an input take less, whatever the noise, and no further; batches of
// small ones as far as their time allows.
func TestLargeBatchesGrowWhileItGains(t *testing.T) {
	const image = 600_000
	rng := rand.New(rand.NewPCG(1, 1))
	noisy := func(took func(n int) time.Duration) func(n int) time.Duration {
		return func(n int) time.Duration { return time.Duration(float64(took(n)) * (0.95 + 0.1*rng.Float64())) }
	}
	caches := func(n int) time.Duration { // an input takes longer in batches above 16
		return linear(2, 0.5+max(0, 0.02*float64(n-16)))(n)
	}
	for _, c := range []struct {
		name        string
		bytes       int
		took        func(n int) time.Duration
		least, most int
	}{
		{"through caches", image, caches, 8, 32},
		{"through caches, and small", 100, caches, 1000, Unlimited},
		{"of a graphics processor", image, linear(20, 0.2), 256, Unlimited},
		{"one by one", image, linear(0, 5), 1, 16},
		{"huge", 64 << 20, linear(1, 100), 1, 8},
	} {
		p := NewProfile()
		s := NewSizer(serving.BatchSpec{Strategy: "aimd"}, p)
		if got := grown(s, p, 2000, c.bytes, noisy(c.took)); got < c.least || got > c.most {
			t.Errorf("%s: size %d, want %d to %d", c.name, got, c.least, c.most)
		}
	}
}

// What gained nothing is tried again, as models and machines change.
func TestALargerBatchIsTriedAgain(t *testing.T) {
	p := NewProfile()
	s := NewSizer(serving.BatchSpec{Strategy: "aimd"}, p)
	if got := grown(s, p, 200, 1<<20, linear(0, 5)); got > 8 {
		t.Fatalf("size %d of what gains nothing", got)
	}
	if got := grown(s, p, 2000, 1<<20, linear(50, 0.5)); got < 64 {
		t.Errorf("size %d of what gains by size", got)
	}
}
