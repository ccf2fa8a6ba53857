package budget

import (
	"sync"
	"testing"
)

func TestBudget(t *testing.T) {
	b := New(200) // each byte takes two
	one, other := b.Lease(), b.Lease()
	for i, step := range []struct {
		of    *Lease
		n     int
		taken bool
		used  int64
	}{
		{&one, 60, true, 120}, {&other, 41, false, 120}, {&other, 40, true, 200}, {&one, 1, false, 200}, {&one, 0, true, 200},
	} {
		if got := step.of.Take(step.n); got != step.taken || b.Used() != step.used {
			t.Errorf("step %d: %v, and %d are used, want %v and %d", i, got, b.Used(), step.taken, step.used)
		}
	}
	one.Release()
	one.Release() // it holds nothing any more
	if b.Used() != 80 || !one.Take(60) {
		t.Errorf("%d are used", b.Used())
	}
	if one.Give(20); b.Used() != 160 {
		t.Errorf("%d are used after 20 bytes were given back", b.Used())
	}
	one.Release()
	other.Release()
	if b.Used() != 0 || b.Limit() != 200 {
		t.Errorf("%d are used of %d", b.Used(), b.Limit())
	}
	var none Lease
	none.Release() // of a request that took nothing
}

// What is refused takes nothing, so that somebody else's smaller request fits.
func TestARefusalTakesNothing(t *testing.T) {
	if b := New(0); b.Limit() != 1 {
		t.Errorf("the limit is %d", b.Limit())
	}
	b := New(2)
	large, small := b.Lease(), b.Lease()
	for range 3 {
		if large.Take(2) {
			t.Error("there is no room for it")
		}
	}
	if !small.Take(1) {
		t.Error("there is room for it")
	}
}

// At no moment more is taken than there is, and in the end all of it is there again.
func TestManyAtATime(t *testing.T) {
	const clients, each = 8, 2000
	b := New(clients / 2 * 10)
	var all sync.WaitGroup
	for i := range clients {
		all.Go(func() {
			l := b.Lease()
			for n := range each {
				l.Take(1 + (i+n)%10)
				if l.held > b.Limit() {
					t.Errorf("one holds %d of %d", l.held, b.Limit())
				}
				if n%3 == 0 {
					l.Release()
				}
			}
			l.Release()
		})
	}
	all.Wait()
	if b.Used() != 0 {
		t.Errorf("%d are left", b.Used())
	}
}

func BenchmarkTake(b *testing.B) {
	all := New(1 << 40)
	b.RunParallel(func(pb *testing.PB) {
		l := all.Lease()
		for pb.Next() {
			l.Take(1)
			l.Release()
		}
	})
}
