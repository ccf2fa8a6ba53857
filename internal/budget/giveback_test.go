package budget

import (
	"context"
	"runtime"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// mib are so many bytes.
func mib(n uint64) uint64 { return n << 20 }

func TestSurplus(t *testing.T) {
	for name, tt := range map[string]struct {
		needed    uint64
		last, now sight
		want      bool
	}{
		"a quiet process":               {mib(30), sight{held: mib(30)}, sight{held: mib(31), free: mib(2), allocated: mib(1)}, false},
		"a small one grew":              {mib(10), sight{held: mib(70)}, sight{held: mib(70)}, false},
		"after an attack":               {mib(30), sight{held: mib(900)}, sight{held: mib(900), allocated: mib(2)}, true},
		"after one, with some traffic":  {mib(80), sight{held: mib(218)}, sight{held: mib(218), allocated: mib(60)}, true},
		"in the middle of one":          {mib(30), sight{held: mib(400)}, sight{held: mib(900), allocated: mib(600)}, false},
		"what is held is in use":        {mib(900), sight{held: mib(900)}, sight{held: mib(900), allocated: mib(2)}, false},
		"a large one grew a little":     {mib(900), sight{held: mib(990)}, sight{held: mib(990)}, false},
		"free, and busy all the same":   {mib(30), sight{held: mib(900), free: mib(700)}, sight{held: mib(900), free: mib(600), allocated: mib(4000)}, true},
		"free only just now":            {mib(30), sight{held: mib(900), free: mib(10)}, sight{held: mib(900), free: mib(600), allocated: mib(4000)}, false},
		"what a collection leaves free": {mib(30), sight{held: mib(900), free: mib(400)}, sight{held: mib(900), free: mib(400), allocated: mib(4000)}, false},
		"little is free":                {mib(30), sight{held: mib(90), free: mib(50)}, sight{held: mib(90), free: mib(50), allocated: mib(400)}, false},
		"at the start":                  {0, sight{held: mib(20)}, sight{held: mib(20)}, false},
		"it was given back by itself":   {mib(900), sight{held: mib(40)}, sight{held: mib(40)}, false},
	} {
		h := holding{needed: tt.needed}
		if got := h.surplus(tt.last, tt.now); got != tt.want {
			t.Errorf("%s: %v", name, got)
		}
		if h.needed > tt.now.held {
			t.Errorf("%s: %d are needed of %d", name, h.needed, tt.now.held)
		}
	}
}

// What is in use for a moment is looked for again, and what is for good at some time no more.
func TestGave(t *testing.T) {
	h := holding{needed: mib(80)}
	busy := sight{held: mib(180)}
	if h.gave(mib(50), busy); !h.surplus(busy, busy) {
		t.Error("what connections held at that moment is not looked for when they have gone")
	}
	for range tries {
		if h.gave(0, busy); !h.surplus(busy, busy) {
			t.Fatal("it is not tried again")
		}
	}
	if h.gave(0, busy); h.surplus(busy, busy) {
		t.Error("what is in use for good is looked for again")
	}
}

// Another attack at the time when it is no longer looked for does not count as in use for good.
func TestGaveUpDuringAnAttack(t *testing.T) {
	h := holding{needed: mib(80)}
	for range tries {
		h.gave(0, sight{held: mib(150)})
	}
	attack := sight{held: mib(400)}
	h.gave(0, attack)
	if h.needed != mib(150) {
		t.Errorf("%d MiB count as needed", h.needed>>20)
	}
	if !h.surplus(attack, attack) {
		t.Error("what the attack took is not looked for")
	}
}

// Whatever took memory, be it many small pieces or stacks of goroutines that nobody counted,
// a minute later the system has it again. Time is the test's, and the memory is real.
func TestMemoryComesBack(t *testing.T) {
	for name, attack := range map[string]func(){
		"large bodies": func() { _ = make([]byte, mib(256)) },
		"small pieces": func() {
			var all [][]byte
			for range mib(256) / 4096 {
				all = append(all, make([]byte, 4096))
			}
			runtime.KeepAlive(all)
		},
		"stacks": func() {
			var all sync.WaitGroup
			end := make(chan struct{})
			for range 4096 {
				all.Go(func() { deep(600); <-end })
			}
			synctest.Wait() // all have their stacks
			close(end)
			all.Wait()
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, stop := context.WithCancel(t.Context())
				defer stop()
				b := New(1)
				go b.GiveBack(ctx)
				time.Sleep(time.Minute)
				before := see().held
				attack()
				if grown := see().held - before; grown < mib(100) {
					t.Fatalf("the attack took %d MiB", grown>>20)
				}
				time.Sleep(time.Minute)
				if left := see().held; left > before+mib(48) {
					t.Errorf("%d MiB are held, and %d were before", left>>20, before>>20)
				}
			})
		})
	}
}

// deep takes some stack, which its goroutine then has.
func deep(n int) byte {
	var frame [128]byte
	if n > 0 {
		frame[n%len(frame)] = deep(n - 1)
	}
	return frame[0]
}

// A process that needs its memory, and one that does nothing, are left alone.
func TestWhatIsNeededIsLeftAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, stop := context.WithCancel(t.Context())
		defer stop()
		cache := make([]byte, mib(128))
		b := New(1)
		go b.GiveBack(ctx)
		go b.GiveBack(ctx) // does nothing: one is enough
		time.Sleep(time.Minute)
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		time.Sleep(24 * time.Hour)
		runtime.ReadMemStats(&after)
		if n := after.NumForcedGC - before.NumForcedGC; n > 0 {
			t.Errorf("it was looked for what is not needed %d times", n)
		}
		runtime.KeepAlive(cache)
	})
}

func BenchmarkLook(b *testing.B) {
	for b.Loop() {
		see()
	}
}
