package cache

import (
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"github.com/topsail-serving/topsail/serving"
	"github.com/topsail-serving/topsail/test/require"
)

func text(t testing.TB, size int) *serving.Output {
	t.Helper()
	out, err := serving.NewOutput(serving.Text(string(make([]byte, size))))
	require.NoError(t, err)
	return out
}

// numbered spreads keys as a hash would.
func numbered(i int) Key {
	return Key{Hi: uint64(i), Lo: uint64(i) * 0x9E3779B97F4A7C15}
}

func TestGetFindsWhatWasPutLast(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := New(1 << 20) // room for all of them
		defer c.Close()
		model := map[Key]*serving.Output{}
		key := rapid.Custom(func(t *rapid.T) Key { return numbered(rapid.IntRange(0, 20).Draw(t, "key")) })
		t.Repeat(map[string]func(*rapid.T){
			"put": func(t *rapid.T) {
				k, out := key.Draw(t, "k"), &serving.Output{JSON: make([]byte, rapid.IntRange(0, 1000).Draw(t, "size"))}
				c.Put(k, out)
				model[k] = out
			},
			"get": func(t *rapid.T) {
				k := key.Draw(t, "k")
				if got := c.Get(k, 0); got != model[k] {
					t.Fatalf("key %v: got %p, want %p", k, got, model[k])
				}
			},
			"": func(t *rapid.T) {
				var bytes int64
				for _, out := range model {
					bytes += int64(out.Bytes() + entryOverhead)
				}
				if c.Len() != len(model) || c.Bytes() != bytes {
					t.Fatalf("%d entries of %d bytes, want %d of %d", c.Len(), c.Bytes(), len(model), bytes)
				}
			},
		})
	})
}

func TestTheCacheIsBoundedInBytes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		limit := rapid.Int64Range(1, 100_000).Draw(t, "limit")
		c := New(limit)
		defer c.Close()
		sizes := rapid.SliceOfN(rapid.IntRange(0, 40_000), 1, 200).Draw(t, "sizes")
		for i, size := range sizes {
			c.Put(numbered(i%150), &serving.Output{JSON: make([]byte, size)})
			if held := c.held(); held > limit {
				t.Fatalf("after %d outputs %d bytes are held, the limit is %d", i+1, held, limit)
			}
		}
		if c.Bytes() != c.held() {
			t.Fatalf("Bytes says %d, and %d are held", c.Bytes(), c.held())
		}
	})
}

// held adds up what can be found in the cache.
func (c *Cache) held() int64 {
	var bytes int64
	for e := range c.outputs.Values() {
		bytes += int64(e.output.Bytes() + entryOverhead)
	}
	return bytes
}

// Goroutines that put at the same time leave the evicting to one of them, and are
// over the limit until it is done.
func TestManyPuttersComeBackToTheBound(t *testing.T) {
	const limit = 1 << 20
	c := New(limit)
	defer c.Close()
	out := text(t, 10_000)
	var all sync.WaitGroup
	for g := range 8 {
		all.Go(func() {
			for i := range 500 {
				c.Put(numbered(g*1000+i), out)
				c.Get(numbered(g*1000+i/2), 0)
			}
		})
	}
	all.Wait()
	c.Put(numbered(-1), out)
	if c.held() > limit || c.held() < limit/2 || c.Bytes() != c.held() {
		t.Errorf("%d bytes are held in the end (Bytes: %d), the limit is %d", c.held(), c.Bytes(), limit)
	}
}

func TestAnOutputBeyondTheLimitIsNotKept(t *testing.T) {
	c := New(10_000)
	defer c.Close()
	small := text(t, 10)
	c.Put(numbered(1), small)
	c.Put(numbered(2), text(t, 20_000))
	if c.Get(numbered(2), 0) != nil || c.Get(numbered(1), 0) != small || c.Len() != 1 {
		t.Errorf("%d entries of %d bytes", c.Len(), c.Bytes())
	}
}

func TestACacheWithoutRoomStillJoins(t *testing.T) {
	c := New(0)
	defer c.Close()
	c.Put(numbered(1), text(t, 1))
	if c.Get(numbered(1), 0) != nil || c.Len() != 0 || c.Bytes() != 0 {
		t.Error("it keeps something")
	}
	f, opened := c.Join(numbered(1), 0, make(Waiter, 1))
	g, again := c.Join(numbered(1), 0, make(Waiter, 1))
	if !opened || again || f != g {
		t.Error("equal questions do not join")
	}
	f.Land(text(t, 1), nil)
	if c.Open() != 0 {
		t.Error("the flight stays")
	}
}

// The age that is good enough is the reader's: one app may take what is too old
// for another.
func TestEveryReaderHasItsOwnMaxAge(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := New(1 << 20)
		defer c.Close()
		out, k := text(t, 1), numbered(1)
		time.Sleep(time.Hour) // the epoch is not the time of the entry
		c.Put(k, out)
		time.Sleep(time.Minute)
		for maxAge, want := range map[time.Duration]*serving.Output{
			0:                  out,
			time.Hour:          out,
			time.Minute:        out,
			time.Minute - 1:    nil,
			time.Nanosecond:    nil,
			2 * time.Minute:    out,
			30 * time.Second:   nil,
			1000 * time.Hour:   out,
			time.Duration(-10): out, // as 0
		} {
			if got := c.Get(k, maxAge); got != want {
				t.Errorf("with a maximum age of %v: got %v, want %v", maxAge, got, want)
			}
		}
		c.Put(k, out) // as fresh as its last put
		if c.Get(k, time.Nanosecond) != out {
			t.Error("an entry that was put again is too old")
		}
	})
}
