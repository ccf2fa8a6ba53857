package predict

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// leaser gives out blocks from a list; then it fails.
type leaser struct {
	mu     sync.Mutex
	blocks []uint32      // guarded by mu
	slow   time.Duration // before it answers
}

func (l *leaser) LeaseQueryIDs(ctx context.Context) (uint32, error) {
	select {
	case <-time.After(l.slow):
	case <-ctx.Done():
		return 0, context.Cause(ctx)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.blocks) == 0 {
		return 0, errors.New("the store is unavailable")
	}
	n := l.blocks[0]
	l.blocks = l.blocks[1:]
	return n, nil
}

// skip uses up ids of the present block.
func (ids *IDs) skip(n int64) { ids.block.Load().used.Add(n) }

func logged() (*slog.Logger, *bytes.Buffer) {
	var b bytes.Buffer
	return slog.New(slog.NewTextHandler(&b, nil)), &b
}

func TestIDsFollowTheLeasedBlocks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log, warnings := logged()
		ids := NewIDs(t.Context(), &leaser{blocks: []uint32{0, 7, randomBlock - 1}}, log)
		defer ids.Close()
		for _, block := range []int64{0, 7, randomBlock - 1} {
			for i := range int64(10) {
				if got, want := ids.Next(), block<<blockBits+i; got != want {
					t.Fatalf("got id %d, want %d", got, want)
				}
			}
			ids.skip(blockLow - 10)
			ids.Next() // fetches the next block
			synctest.Wait()
			ids.skip(blockSize - blockLow - 2)
			if got, want := ids.Next(), block<<blockBits+blockSize-1; got != want {
				t.Fatalf("the last id of the block is %d, want %d", got, want)
			}
		}
		if got := ids.Next(); got < randomBlock<<blockBits || got >= 1<<53 {
			t.Errorf("id %d is not of a random block", got)
		}
		if n := strings.Count(warnings.String(), "cannot lease query ids"); n != 1 {
			t.Errorf("%d warnings:\n%s", n, warnings)
		}
	})
}

func TestIDsWithoutALease(t *testing.T) {
	tests := map[string]struct {
		leaser Leaser
		warned bool
	}{
		"no leaser":                {nil, false},
		"a leaser that fails":      {&leaser{}, true},
		"a leaser that hangs":      {&leaser{slow: time.Hour}, true},
		"a block beyond the range": {&leaser{blocks: []uint32{randomBlock}}, true},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				log, warnings := logged()
				start := time.Now()
				ids := NewIDs(t.Context(), test.leaser, log)
				defer ids.Close()
				if took := time.Since(start); took > leaseAfter {
					t.Errorf("it held up the start for %v", took)
				}
				for range 100 {
					if got := ids.Next(); got < randomBlock<<blockBits || got >= 1<<53 {
						t.Fatalf("id %d is not of a random block below 2^53", got)
					}
				}
				if (warnings.Len() > 0) != test.warned {
					t.Errorf("warned: %s", warnings)
				}
			})
		})
	}
}

func TestNewIDsEndsWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		start := time.Now()
		ids := NewIDs(ctx, &leaser{slow: time.Hour}, slog.New(slog.DiscardHandler))
		if took := time.Since(start); took != time.Second {
			t.Errorf("it took %v", took)
		}
		ids.Close()
	})
}

// No query waits for a lease: while one is under way, and the block is used up, the
// next is drawn at random. The leased block is not lost.
func TestASlowLeaseHoldsNobodyUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := &leaser{blocks: []uint32{1, 2}}
		ids := NewIDs(t.Context(), l, slog.New(slog.DiscardHandler))
		defer ids.Close()
		l.slow = time.Second
		ids.skip(blockLow)
		ids.Next()
		ids.skip(blockSize)
		start := time.Now()
		if got := ids.Next(); got < randomBlock<<blockBits {
			t.Errorf("id %d is of a leased block", got)
		}
		if took := time.Since(start); took != 0 {
			t.Errorf("it took %v", took)
		}
		time.Sleep(2 * time.Second)
		ids.skip(blockSize)
		if got := ids.Next(); got != 2<<blockBits {
			t.Errorf("got id %d, want the first of block 2", got)
		}
	})
}

func TestCloseEndsALease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := &leaser{blocks: []uint32{1}}
		ids := NewIDs(t.Context(), l, slog.New(slog.DiscardHandler))
		l.slow = time.Hour
		ids.skip(blockLow)
		ids.Next()
		start := time.Now()
		ids.Close()
		if took := time.Since(start); took != 0 {
			t.Errorf("it took %v", took)
		}
	})
}

func TestIDsAreUnique(t *testing.T) {
	const askers, each = 8, 12_500
	ids := NewIDs(t.Context(), nil, slog.New(slog.DiscardHandler))
	defer ids.Close()
	ids.skip(blockSize - askers*each/2) // the block ends in the middle
	all := make([][]int64, askers)
	var asking sync.WaitGroup
	for g := range askers {
		asking.Go(func() {
			for range each {
				all[g] = append(all[g], ids.Next())
			}
		})
	}
	asking.Wait()
	flat := slices.Concat(all...)
	slices.Sort(flat)
	if n := len(slices.Compact(flat)); n != askers*each {
		t.Errorf("%d different ids of %d", n, askers*each)
	}
	if flat[0] < 0 || slices.Max(flat) >= 1<<53 {
		t.Errorf("ids from %d to %d", flat[0], slices.Max(flat))
	}
}

func BenchmarkIDs(b *testing.B) {
	ids := NewIDs(b.Context(), nil, slog.New(slog.DiscardHandler))
	defer ids.Close()
	b.ReportAllocs()
	for b.Loop() {
		ids.Next()
	}
}
