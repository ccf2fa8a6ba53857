package predict

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/topsail-serving/topsail/gateway/dispatch"
	"github.com/topsail-serving/topsail/rpc"
	"github.com/topsail-serving/topsail/serving"
)

func timeout(d time.Duration) (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.Background(), d)
}

// bell is a waker that notes when it was rung.
type bell struct {
	answer func(ctx context.Context) error // nil: no error
	log    bytes.Buffer

	mu   sync.Mutex // guards the following
	rung []ring
}

type ring struct {
	id serving.ModelID
	at time.Duration // since the start
}

// wakes starts the predictor's waking. What it leaves running fails the bubble.
func (r *rig) wakes(answer func(context.Context) error) *bell {
	b := &bell{answer: answer}
	ctx, cancel := context.WithCancel(r.ctx)
	r.all.Go(func() {
		defer cancel()
		_ = r.p.dispatch.Run(ctx, b.since(time.Now()), slog.New(slog.NewTextHandler(&b.log, nil)))
	})
	return b
}

func (b *bell) since(start time.Time) dispatch.Waker {
	return wakerFunc(func(ctx context.Context, id serving.ModelID) error {
		b.mu.Lock()
		b.rung = append(b.rung, ring{id, time.Since(start)})
		b.mu.Unlock()
		if b.answer == nil {
			return nil
		}
		return b.answer(ctx)
	})
}

type wakerFunc func(context.Context, serving.ModelID) error

func (f wakerFunc) Wake(ctx context.Context, id serving.ModelID) error { return f(ctx, id) }

func (b *bell) times(id serving.ModelID) (at []time.Duration) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, r := range b.rung {
		if r.id == id {
			at = append(at, r.at)
		}
	}
	return at
}

func (r *rig) wantRung(b *bell, id serving.ModelID, want ...time.Duration) {
	r.Helper()
	r.settle()
	if got := b.times(id); !slices.Equal(got, want) {
		r.Errorf("%v was woken at %v, want %v", id, got, want)
	}
}

func TestTheFirstQueryWakesAtOnce(t *testing.T) {
	bubble(t, func(t *rig) {
		b := t.wakes(nil)
		t.serves(func(a *serving.App) { a.ColdStart = serving.Duration(10 * time.Second) }, m1, m2)
		t.wantRung(b, m2)
		res := t.later(newQuery(1))
		t.wantRung(b, m2, 0)
		time.Sleep(2500 * time.Millisecond)
		t.wantRung(b, m2, 0, time.Second, 2*time.Second)
		t.replica("a", echoes(0), m2)
		res.wait()
		t.wantOutput(res.Prediction, 1)
		time.Sleep(10 * time.Second)
		t.wantRung(b, m2, 0, time.Second, 2*time.Second)
		t.wantRung(b, m1)
		if n := t.metric("topsail_gateway_wakes_total"); n != 3 {
			t.Errorf("%v wakes counted", n)
		}
	})
}

// Who asks again and again wakes once a second, who stops asking no more.
func TestWakesAreOnceASecond(t *testing.T) {
	bubble(t, func(t *rig) {
		b := t.wakes(nil)
		t.serves(nil, m1)
		for i := range 25 {
			t.predict(newQuery(float64(i)))
			time.Sleep(margin)
		}
		time.Sleep(10 * time.Second)
		t.wantRung(b, m1, 0, time.Second, 2*time.Second, 3*time.Second)
		start := time.Since(t.began)
		t.predict(newQuery(1))
		t.wantRung(b, m1, 0, time.Second, 2*time.Second, 3*time.Second, start)
	})
}

// The current version is woken although one that served before takes its queries.
func TestAVersionThatIsPassedOverIsWoken(t *testing.T) {
	bubble(t, func(t *rig) {
		t.replica("one", echoes(0), m1)
		t.serves(nil, m1)
		t.wantAsked("before", m1)
		b := t.wakes(nil)
		t.serves(nil, m1, m2)
		t.wantRung(b, m2)
		t.wantAsked("not yet", m1)
		t.wantRung(b, m2, 0)
		two := t.replica("two", echoes(0), m2)
		time.Sleep(5 * time.Second)
		t.wantAsked("it has come", m2)
		t.wantRung(b, m2, 0)
		t.stop(two)
		t.wantAsked("it has gone", m1)
		t.wantRung(b, m2, 0, 5*time.Second)
	})
}

// A replica that refuses first and then says that it is stopping leaves nobody to
// ask: that wakes, too.
func TestARefusedQuestionWakes(t *testing.T) {
	bubble(t, func(t *rig) {
		b := t.wakes(nil)
		a := t.replica("a", fails(rpc.StatusDraining, "stopping"), m1)
		t.serves(nil, m1)
		t.later(newQuery(1))
		t.wantQueued(1)
		t.wantRung(b, m1)
		time.Sleep(refusedPause / 2)
		a.announce(rpc.StateDraining)
		t.wantRung(b, m1, refusedPause/2)
	})
}

// A waker that fails is told of once, and tried on; a version that it fails on or
// hangs on delays no other, and no query.
func TestAWakerThatFails(t *testing.T) {
	broken := errors.New("the store is unavailable")
	bubble(t, func(t *rig) {
		good := time.Now().Add(2500 * time.Millisecond)
		b := t.wakes(func(context.Context) error {
			if time.Now().Before(good) || time.Now().After(good.Add(time.Second)) {
				return broken
			}
			return nil
		})
		t.serves(func(a *serving.App) { a.ColdStart = serving.Duration(5500 * time.Millisecond) }, m1)
		a, took := t.predict(newQuery(1))
		t.wantDefault(a, serving.NoReplica)
		if took != 5500*time.Millisecond-margin {
			t.Errorf("it took %v", took)
		}
		if n := len(b.times(m1)); n != 6 {
			t.Errorf("%d wakes", n)
		}
		if text := b.log.String(); strings.Count(text, "\n") != 2 || strings.Count(text, "model=m:1") != 2 || !strings.Contains(text, "the store is unavailable") {
			t.Errorf("logged: %s", text)
		}
	})
	bubble(t, func(t *rig) {
		b := t.wakes(func(ctx context.Context) error {
			start := time.Now()
			<-ctx.Done()
			if took := time.Since(start); took > wakeWithin {
				t.Errorf("a wake took %v", took)
			}
			return ctx.Err()
		})
		var models []*serving.Model
		var all []*serving.App
		for i := range 300 {
			name := fmt.Sprint("m", i)
			models, all = append(models, newModel(id(name, "1"))), append(all, newApp(name, name))
		}
		t.set(newCatalog(all, models...))
		var qs []serving.Query
		for i := range 300 {
			q := newQuery(1)
			q.App = fmt.Sprint("m", i)
			qs = append(qs, *q)
		}
		for _, a := range t.batch(qs) {
			t.wantDefault(a, serving.NoReplica)
		}
		for i := range 300 {
			if n := len(b.times(id(fmt.Sprint("m", i), "1"))); n > 1 {
				t.Errorf("m%d was woken %d times", i, n)
			}
		}
		if n := t.metric("topsail_gateway_wakes_total"); n < maxWakes {
			t.Errorf("%v wakes", n)
		}
		time.Sleep(2 * wakeWithin)
	})
}

// Run ends with its context, also while it wakes; then nobody is woken, and queries
// wait all the same.
func TestRunEnds(t *testing.T) {
	bubble(t, func(t *rig) {
		ctx, cancel := timeout(slo / 2)
		defer cancel()
		ended := make(chan error, 1)
		go func() {
			ended <- t.p.dispatch.Run(ctx, wakerFunc(func(ctx context.Context, _ serving.ModelID) error { <-ctx.Done(); return ctx.Err() }), slog.New(slog.DiscardHandler))
		}()
		t.serves(nil, m1)
		t.predict(newQuery(1))
		if err := <-ended; !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("Run: %v", err)
		}
		for i := range 2 * maxWakes {
			t.later(newQuery(float64(i)))
		}
		t.replica("a", echoes(0), m1)
		a, _ := t.predict(newQuery(-1))
		t.wantOutput(a, -1)
	})
}
