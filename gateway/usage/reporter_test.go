package usage

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"github.com/topsail-serving/topsail/serving"
)

// fakeStore is a store that takes reports as the contract says, and fails as the test says.
type fakeStore struct {
	mu      sync.Mutex // guards what follows
	writers map[string]uint64
	answers uint64
	apps    map[string]uint64 // answers of each
	reports int               // that came
	largest int               // counts of one
	fail    func() (before, after error)
}

var errAway = errors.New("the store is away")

func (s *fakeStore) AddUsage(ctx context.Context, r serving.UsageReport) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	s.reports++
	s.largest = max(s.largest, len(r.Counted))
	var before, after error
	if s.fail != nil {
		before, after = s.fail()
	}
	if before != nil {
		return before
	}
	if r.Number > s.writers[r.Writer] {
		s.writers[r.Writer] = r.Number
		for _, u := range r.Counted {
			s.answers += u.Answers
			s.apps[u.Key.App] += u.Answers
		}
	}
	return after
}

func (s *fakeStore) has() (answers uint64, reports int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.answers, s.reports
}

// source is counted by the test, so many answers of each of some models.
type source struct {
	models  int
	waiting atomic.Uint64
	taken   int
}

func (s *source) take() (revision uint64, counted []serving.Usage) {
	s.taken++
	waiting := s.waiting.Swap(0)
	for i := 0; i < s.models && waiting > 0; i++ {
		counted = append(counted, serving.Usage{Key: key, Answers: waiting})
	}
	return 3, counted
}

// waits is a source with answers.
func waits(models int, answers uint64) *source {
	s := &source{models: models}
	s.waiting.Store(answers)
	return s
}

func newFakeStore() *fakeStore {
	return &fakeStore{writers: map[string]uint64{}, apps: map[string]uint64{}}
}

var quiet = slog.New(slog.DiscardHandler)

// TestReports has a report once a second, of what there is, and one at the end.
func TestReports(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store, from := newFakeStore(), &source{models: 1}
		r := NewReporter(from.take, store, quiet)
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- r.Run(ctx) }()
		for second := range 5 {
			synctest.Wait()
			from.waiting.Store(2)
			time.Sleep(time.Second)
			synctest.Wait()
			if answers, reports := store.has(); answers != uint64(2*(second+1)) || reports != second+1 {
				t.Errorf("%d answers in %d reports after %d s", answers, reports, second+1)
			}
		}
		time.Sleep(10 * time.Second) // with nothing to say
		synctest.Wait()
		from.waiting.Store(1)
		cancel()
		if err := <-ended; !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
		if store.answers != 11 || store.reports != 6 || len(store.writers) != 1 {
			t.Errorf("%d answers in %d reports of %d writers in the end", store.answers, store.reports, len(store.writers))
		}
	})
}

// TestReportsWhileTheStoreIsAway has one report wait, and the rest add up where it is
// counted.
func TestReportsWhileTheStoreIsAway(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store, from := newFakeStore(), &source{models: 2 * serving.MaxUsageReport}
		away := errAway
		store.fail = func() (before, after error) { return away, nil }
		r := NewReporter(from.take, store, quiet)
		for range 3600 {
			from.waiting.Add(1)
			r.report(t.Context())
			time.Sleep(time.Second)
		}
		if store.answers != 0 || from.taken != 1 || len(r.pending) != 2 {
			t.Fatalf("%d answers, taken %d times, %d reports wait", store.answers, from.taken, len(r.pending))
		}
		away = nil
		r.report(t.Context())
		if want := uint64(3600 * from.models); store.answers != want || len(r.pending) != 0 || store.largest > serving.MaxUsageReport {
			t.Errorf("%d answers, want %d; %d reports wait, of %d counts", store.answers, want, len(r.pending), store.largest)
		}
	})
}

// TestAReportInDoubtIsGivenUp while the store still knows its writer.
func TestAReportInDoubtIsGivenUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store, from := newFakeStore(), waits(1, 1)
		lost := errAway
		store.fail = func() (before, after error) { return nil, lost }
		r := NewReporter(from.take, store, quiet)
		r.report(t.Context()) // it arrives, and nobody says so
		time.Sleep(serving.UsageDoubt)
		r.report(t.Context())
		if store.answers != 1 {
			t.Fatalf("%d answers", store.answers)
		}
		time.Sleep(time.Second)
		clear(store.writers) // the store forgets, much later than this
		lost = nil
		from.waiting.Store(10)
		r.report(t.Context())
		if store.answers != 11 || len(r.pending) != 0 {
			t.Errorf("%d answers, %d reports wait", store.answers, len(r.pending))
		}
	})
}

// TestTheLastReportHasATime ends a process whose store does not answer.
func TestTheLastReportHasATime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		from := waits(1, 1)
		r := NewReporter(from.take, hanging{}, quiet)
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		start := time.Now()
		_ = r.Run(ctx)
		if took := time.Since(start); took != lastWithin {
			t.Errorf("it took %v", took)
		}
	})
}

// hanging is a store that never answers.
type hanging struct{}

func (hanging) AddUsage(ctx context.Context, _ serving.UsageReport) error {
	<-ctx.Done()
	return context.Cause(ctx)
}

// TestEveryAnswerIsReportedOnce has requests and replies get lost as they like.
func TestEveryAnswerIsReportedOnce(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		store, from := newFakeStore(), &source{models: rapid.SampledFrom([]int{1, 3, serving.MaxUsageReport + 1}).Draw(t, "models")}
		trouble := rapid.Custom(func(t *rapid.T) error {
			if rapid.Bool().Draw(t, "trouble") {
				return errAway
			}
			return nil
		})
		store.fail = func() (before, after error) {
			return trouble.Draw(t, "the request is lost"), trouble.Draw(t, "the reply is lost")
		}
		r := NewReporter(from.take, store, quiet)
		counted := uint64(0)
		for range rapid.IntRange(1, 30).Draw(t, "seconds") {
			n := rapid.Uint64Range(0, 5).Draw(t, "answers")
			from.waiting.Add(n)
			counted += n * uint64(from.models)
			r.report(t.Context())
			if store.answers > counted {
				t.Fatalf("%d answers are stored of %d", store.answers, counted)
			}
		}
		store.fail = nil
		r.report(t.Context())
		if store.answers != counted || len(store.writers) > 1 {
			t.Fatalf("%d answers are stored of %d, by %d writers", store.answers, counted, len(store.writers))
		}
	})
}

// TestAStoreThatGoesBack has it be given back older copies of its data, besides: what it
// has is never there twice, and what comes in the end is taken.
func TestAStoreThatGoesBack(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		store := newFakeStore()
		second := 0
		r := NewReporter(func() (uint64, []serving.Usage) {
			return 3, []serving.Usage{{Key: serving.UsageKey{App: fmt.Sprint(second)}, Answers: 1}} // told apart by when it was taken
		}, store, quiet)
		type copied struct{ writers, apps map[string]uint64 }
		copies := []copied{{}}
		for second = range rapid.IntRange(1, 40).Draw(t, "seconds") {
			switch rapid.IntRange(0, 5).Draw(t, "what") {
			case 0:
				copies = append(copies, copied{maps.Clone(store.writers), maps.Clone(store.apps)})
			case 1:
				back := rapid.SampledFrom(copies).Draw(t, "back to")
				store.writers, store.apps = map[string]uint64{}, map[string]uint64{}
				maps.Copy(store.writers, back.writers)
				maps.Copy(store.apps, back.apps)
			}
			lost := rapid.Bool().Draw(t, "the reply is lost")
			store.fail = func() (before, after error) {
				if lost {
					return nil, errAway
				}
				return nil, nil
			}
			r.report(t.Context())
			for app, n := range store.apps {
				if n > 1 {
					t.Fatalf("what was taken in second %s is stored %d times", app, n)
				}
			}
		}
		store.fail = nil
		second++
		r.report(t.Context())
		if len(r.pending) != 0 || store.apps[fmt.Sprint(second)] != 1 {
			t.Fatalf("stored %v, and %d reports wait", store.apps, len(r.pending))
		}
	})
}
