package feedback

import (
	"bytes"
	"context"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/topsail-serving/topsail/internal/obs"
	"github.com/topsail-serving/topsail/serving"
)

// keeper is a recorder on a store, which runs until stop.
type keeper struct {
	*Recorder
	store    *store
	registry *obs.Registry
	log      *bytes.Buffer
	stop     func()
}

// keeping runs a test with a keeper in a bubble.
func keeping(t *testing.T, run func(t *testing.T, k *keeper)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		k := newKeeper()
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan struct{})
		go func() { defer close(ended); _ = k.Run(ctx) }()
		k.stop = func() { stop(); <-ended }
		synctest.Wait()
		run(t, k)
		k.stop()
	})
}

func newKeeper() *keeper {
	k := &keeper{store: newStore(), registry: obs.NewRegistry(), log: &bytes.Buffer{}}
	k.Recorder = NewRecorder(k.store, slog.New(slog.NewTextHandler(k.log, nil)), k.registry)
	return k
}

func (k *keeper) count(t *testing.T, result string) float64 {
	t.Helper()
	r := rig{TB: t, registry: k.registry}
	return r.metric(`topsail_feedback_records_total{result="` + result + `"}`)
}

func (k *keeper) has(t *testing.T, query int64) bool {
	t.Helper()
	_, err := k.store.Records.RecordOf(t.Context(), "app", query)
	return err == nil
}

func record(query int64) *serving.Record {
	return &serving.Record{
		QueryID: query, App: "app", InputType: serving.Doubles, Input: input(float64(query)).Data, Output: []byte("1"),
		Expires: time.Now().Add(time.Hour), Asked: []serving.RecordedAsk{{ModelID: id("a")}},
	}
}

func TestRecordsAreStoredTogether(t *testing.T) {
	keeping(t, func(t *testing.T, k *keeper) {
		for q := range int64(100) {
			k.Keep(record(q + 1))
		}
		if k.has(t, 1) {
			t.Error("stored at once")
		}
		time.Sleep(flushEvery)
		synctest.Wait()
		if !k.has(t, 1) || !k.has(t, 100) || k.store.puts != 1 || k.count(t, "kept") != 100 {
			t.Errorf("%d times stored, %v kept", k.store.puts, k.count(t, "kept"))
		}
		time.Sleep(time.Second)
		if k.store.puts != 1 {
			t.Error("nothing was stored")
		}
	})
}

// A flush stores what was kept before it, however many want one.
func TestFlush(t *testing.T) {
	keeping(t, func(t *testing.T, k *keeper) {
		var all sync.WaitGroup
		for q := range int64(50) {
			all.Go(func() {
				k.Keep(record(q + 1))
				k.Flush(t.Context())
				if !k.has(t, q+1) {
					t.Errorf("query %d has no record after a flush", q+1)
				}
			})
		}
		all.Wait()
		k.store.is(nil, time.Hour)
		k.Keep(record(1000))
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
		defer cancel()
		start := time.Now()
		k.Flush(ctx)
		if took := time.Since(start); took != 10*time.Millisecond {
			t.Errorf("a flush without time took %v", took)
		}
		k.stop()
		k.Flush(t.Context()) // returns
	})
}

// What is left at the end is stored, also what was on its way when the end came.
func TestTheLastRecords(t *testing.T) {
	keeping(t, func(t *testing.T, k *keeper) {
		k.store.is(nil, 100*time.Millisecond)
		k.Keep(record(1))
		time.Sleep(2 * flushEvery)
		k.Keep(record(2))
		k.stop()
		if !k.has(t, 1) || !k.has(t, 2) || k.count(t, "lost") != 0 {
			t.Errorf("1 is there: %v, 2: %v", k.has(t, 1), k.has(t, 2))
		}
	})
}

// A store that is away loses records, which is counted, and said once.
func TestRecordsAreLost(t *testing.T) {
	keeping(t, func(t *testing.T, k *keeper) {
		k.store.is(errAway, 0)
		for q := range int64(20) {
			k.Keep(record(q + 1))
			time.Sleep(flushEvery)
		}
		k.store.is(nil, 0)
		for q := range int64(20) {
			k.Keep(record(q + 100))
			time.Sleep(flushEvery)
		}
		time.Sleep(flushEvery)
		synctest.Wait()
		if lost, kept := k.count(t, "lost"), k.count(t, "kept"); lost+kept != 40 || lost < 19 || kept < 19 {
			t.Errorf("%v lost, %v kept", lost, kept)
		}
		k.stop()
		if said := k.log.String(); strings.Count(said, "cannot store") != 1 || strings.Count(said, "stored again") != 1 {
			t.Errorf("logged %s", said)
		}
	})
}

func TestRecordsAreBounded(t *testing.T) {
	k := newKeeper() // which does not run
	for q := range int64(maxPending + 10) {
		k.Keep(record(q + 1))
	}
	if len(k.pending) != maxPending || k.count(t, "lost") != 10 {
		t.Errorf("%d wait, %v lost", len(k.pending), k.count(t, "lost"))
	}
	k = newKeeper()
	for q := range int64(100) {
		large := record(q + 1)
		large.Input = make([]byte, 1<<20)
		k.Keep(large)
	}
	if k.bytes != maxPendingBytes || k.count(t, "lost") != 36 {
		t.Errorf("%d bytes wait, %v lost", k.bytes, k.count(t, "lost"))
	}
}

// A large input is known by its hash only, and a large answer leaves no record.
func TestLargeRecords(t *testing.T) {
	keeping(t, func(t *testing.T, k *keeper) {
		large, huge := record(1), record(2)
		large.Input = make([]byte, serving.MaxRecordedInput+8)
		hash := serving.HashInput(serving.Input{Type: large.InputType, Data: large.Input})
		huge.Output = bytes.Repeat([]byte("1"), serving.MaxRecord)
		k.Keep(large)
		k.Keep(huge)
		k.Keep(record(3))
		k.Flush(t.Context())
		got, err := k.store.Records.NewestRecord(t.Context(), "app", "", "", hash)
		if err != nil || got.QueryID != 1 || got.Input != nil {
			t.Errorf("%+v, %v", got, err)
		}
		if k.has(t, 2) || !k.has(t, 3) || k.count(t, "lost") != 1 || k.log.Len() != 0 {
			t.Errorf("%v lost, logged %s", k.count(t, "lost"), k.log)
		}
	})
}

// Of apps that learn nothing, a thousand records a second are wanted, and of large inputs fewer.
func TestTheQuota(t *testing.T) {
	for _, c := range []struct{ size, want int }{{0, 1000}, {perRecord - 1, 1000}, {perRecord, 500}, {4 * perRecord, 200}, {100 * perRecord, 10}, {64 << 20, 1}} {
		testQuota(t, c.size, c.want)
	}
}

func testQuota(t *testing.T, size, want int) {
	keeping(t, func(t *testing.T, k *keeper) {
		wanted := 0
		for range 1000 { // a second
			for range 10 {
				if k.Wants(false, size) {
					wanted++
				}
				if !k.Wants(true, size) {
					t.Fatal("a record to learn from is not wanted")
				}
			}
			time.Sleep(time.Millisecond)
		}
		if wanted < want*98/100 || wanted > want*102/100 {
			t.Errorf("%d wanted in a second of inputs of %d bytes, not %d", wanted, size, want)
		}
	})
}

func BenchmarkKeep(b *testing.B) {
	k := newKeeper()
	one := record(1)
	b.ReportAllocs()
	for b.Loop() {
		if k.Keep(one); len(k.pending) == maxPending {
			k.take()
		}
	}
}
