package stream

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"github.com/topsail-serving/topsail/internal/obs"
	"github.com/topsail-serving/topsail/serving"
	"github.com/topsail-serving/topsail/test/require"
)

// partitions is a consumer of some partitions in memory, of which any may go to another member and come back.
type partitions struct {
	mu       sync.Mutex
	records  [][]serving.StreamRecord // of each partition
	lost     []chan struct{}          // the same
	next     []int                    // the same: to be looked at
	given    map[string]bool          // in flight, by their place
	done     map[string]bool          // the same
	results  []string                 // places, in the order in which results were committed
	failing  func() error             // of Commit; it may fail after it committed
	holds    func(place string) bool  // has results wait
	inFlight int
	most     int
	changed  chan struct{}
}

func newPartitions(count, records, keys int) *partitions {
	p := &partitions{given: map[string]bool{}, done: map[string]bool{}, changed: make(chan struct{}, 1)}
	for i := range count {
		var all []serving.StreamRecord
		for j := range records {
			r := serving.StreamRecord{Stream: "in", Place: fmt.Sprintf("%d/%d", i, j), Value: fmt.Appendf(nil, "%d/%d", i, j)}
			if keys > 0 {
				r.Key = []byte(strconv.Itoa(j * 7 % keys))
			}
			all = append(all, r)
		}
		p.records, p.lost, p.next = append(p.records, all), append(p.lost, make(chan struct{})), append(p.next, 0)
	}
	return p
}

func (p *partitions) Poll(ctx context.Context, most int) ([]serving.StreamRecord, error) {
	for {
		if records := p.take(most); len(records) > 0 {
			return records, nil
		}
		select {
		case <-p.changed:
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}

func (p *partitions) take(most int) (records []serving.StreamRecord) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for i := range p.records {
		for ; p.next[i] < len(p.records[i]) && len(records) < most; p.next[i]++ {
			r := p.records[i][p.next[i]]
			if p.done[r.Place] {
				continue
			}
			r.Lost = p.lost[i]
			p.given[r.Place] = true
			records = append(records, r)
		}
	}
	p.inFlight += len(records)
	p.most = max(p.most, p.inFlight)
	return records
}

func (p *partitions) Commit(_ context.Context, results []serving.StreamResult) (waiting []int, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	failed := p.failing()
	if failed != nil && failed.Error() == "before" {
		return nil, failed
	}
	for i, r := range results {
		if r.Record.IsLost() {
			return nil, serving.ErrRecordsLost
		}
		if p.holds(r.Record.Place) {
			waiting = append(waiting, i)
		}
	}
	for i, r := range results {
		place := r.Record.Place
		if slices.Contains(waiting, i) {
			continue
		}
		if p.done[place] || !p.given[place] {
			return nil, fmt.Errorf("%s is not in flight", place)
		}
		p.done[place] = true
		p.results = append(p.results, place)
		p.inFlight--
	}
	if failed != nil { // and it is not known
		for i := range p.lost {
			p.move(i)
		}
		return nil, failed
	}
	return waiting, nil
}

// lose has a partition go to another member, and come back.
func (p *partitions) lose(i int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.move(i)
}

func (p *partitions) move(i int) {
	close(p.lost[i])
	p.lost[i], p.next[i] = make(chan struct{}), 0
	for _, r := range p.records[i] {
		if p.given[r.Place] && !p.done[r.Place] {
			p.inFlight--
		}
		delete(p.given, r.Place)
	}
	signal(p.changed)
}

func (p *partitions) Close() error { return nil }

type failure string

func (f failure) Error() string { return string(f) }

// TestWindow has records take any time, commits fail, partitions go and come, and jobs end and begin. Each record
// has one result, those of one sequence in their order, and the window is never larger than it may be.
func TestWindow(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		order := rapid.SampledFrom([]Order{OrderKey, OrderPartition, OrderNone}).Draw(rt, "order")
		keys := rapid.SampledFrom([]int{0, 1, 3, 10}).Draw(rt, "keys")
		batch := rapid.IntRange(1, 20).Draw(rt, "batch")
		takes := rapid.SliceOfN(rapid.IntRange(0, 50), 1, 30).Draw(rt, "takes")
		fails := rapid.SliceOfN(rapid.SampledFrom([]string{"", "", "", "before", "after"}), 1, 20).Draw(rt, "fails")
		losses := rapid.SliceOfN(rapid.IntRange(0, 200), 0, 5).Draw(rt, "losses")
		lives := rapid.SliceOfN(rapid.IntRange(0, 300), 0, 3).Draw(rt, "lives")
		var p *partitions
		synctest.Test(t, func(t *testing.T) {
			p = newPartitions(2, 60, keys)
			commits, failing := 0, true
			p.failing = func() error {
				if commits++; failing && fails[commits%len(fails)] != "" {
					return failure(fails[commits%len(fails)])
				}
				return nil
			}
			p.holds = func(string) bool { return failing && order == OrderNone && commits%3 == 0 }
			serve := func() (stop func()) {
				w := &work{handle: func(ctx context.Context, it *Item) error {
					sum := 0
					for _, c := range it.Record.Place {
						sum = 31*sum + int(c)
					}
					select {
					case <-time.After(time.Duration(takes[sum%len(takes)]) * time.Millisecond):
						return nil
					case <-ctx.Done():
						return context.Cause(ctx)
					}
				}}
				j, err := New(Config{Name: "s", Consumer: p, Output: "out", DeadLetter: "dead", Batch: batch, Order: order, Drain: 20 * time.Millisecond}, testKind(), NewMetrics(obs.NewRegistry(), testKind()), w)
				require.NoError(t, err)
				ctx, cancel := context.WithCancel(t.Context())
				var running sync.WaitGroup
				running.Go(func() { _ = j.Run(ctx) })
				return func() {
					cancel()
					running.Wait()
					for i := range p.lost {
						p.lose(i)
					}
				}
			}
			for _, life := range lives {
				stop := serve()
				time.Sleep(time.Duration(life) * time.Millisecond)
				stop()
			}
			stop := serve()
			for _, loss := range losses {
				time.Sleep(time.Duration(loss) * time.Millisecond)
				p.lose(loss % len(p.lost))
			}
			time.Sleep(time.Second)
			p.mu.Lock()
			failing = false
			p.mu.Unlock()
			time.Sleep(time.Minute)
			stop()
		})
		check(rt, p, order, batch)
	})
}

func check(t *rapid.T, p *partitions, order Order, batch int) {
	if len(p.results) != 120 || p.most > batch {
		t.Errorf("%d results of 120 records, %d in flight of %d", len(p.results), p.most, batch)
	}
	last := map[sequence]int{}
	for _, place := range p.results {
		var partition, offset int
		if _, err := fmt.Sscanf(place, "%d/%d", &partition, &offset); err != nil {
			t.Fatal(err)
		}
		sequence, is := order.of(&Item{Record: &p.records[partition][offset]})
		if before, seen := last[sequence]; is && seen && before > offset {
			t.Errorf("the result of %s leaves after that of %d", place, before)
		}
		last[sequence] = offset
	}
}

// TestSlowKey has one slow record hold up those of its key and no others.
func TestSlowKey(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPartitions(1, 50, 5)
		p.failing, p.holds = func() error { return nil }, func(string) bool { return false }
		w := &work{handle: func(ctx context.Context, it *Item) error {
			if it.Record.Place == "0/0" {
				time.Sleep(time.Minute)
			}
			return nil
		}}
		j, err := New(Config{Name: "s", Consumer: p, Output: "out", DeadLetter: "dead", Batch: 20}, testKind(), NewMetrics(obs.NewRegistry(), testKind()), w)
		require.NoError(t, err)
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		go func() { _ = j.Run(ctx) }()
		time.Sleep(time.Second)
		synctest.Wait()
		p.mu.Lock()
		got := len(p.results)
		p.mu.Unlock()
		if n, held := j.window.now(); got != 40 || n != 10 || held != time.Second {
			t.Errorf("%d results; %d in flight, for %v", got, n, held)
		}
		time.Sleep(time.Minute)
		synctest.Wait()
		if n, _ := j.window.now(); len(p.results) != 50 || n != 0 {
			t.Errorf("%d results; %d in flight", len(p.results), n)
		}
	})
}

// TestBytes polls no more while the records in flight are as large as they may be.
func TestBytes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWindow(OrderNone, 10, 100)
		item := func(bytes int) *Item {
			it, _ := newItem(t.Context(), &serving.StreamRecord{Value: make([]byte, bytes)}, time.Now())
			return it
		}
		large := item(100)
		w.add([]*Item{large})
		if n := w.room(); n != 0 {
			t.Errorf("room for %d", n)
		}
		waited := make(chan int)
		go func() { waited <- w.awaitRoom(t.Context()) }()
		synctest.Wait()
		w.remove(large)
		if n := <-waited; n != 10 {
			t.Errorf("room for %d", n)
		}
	})
}
