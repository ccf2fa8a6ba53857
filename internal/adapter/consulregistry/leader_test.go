//go:build servers

package consulregistry

import (
	"context"
	"net/http"
	"testing"
	"time"

	"github.com/topsail-serving/topsail/scheduler/leader"
)

// elector runs an elector; terms has its terms, and ends when the work of one was
// told to end.
type elector struct {
	terms chan *leader.Term
	ends  chan time.Time
	stop  func()
}

func elect(t *testing.T, addr, key, holder string) *elector {
	e := &elector{terms: make(chan *leader.Term, 9), ends: make(chan time.Time, 9)}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		leader.New(leader.Config{Lock: connect(t, addr).Lock(key), Holder: holder}).Run(ctx, func(ctx context.Context, term *leader.Term) error {
			e.terms <- term
			<-ctx.Done()
			e.ends <- time.Now()
			return nil
		})
	}()
	e.stop = func() { cancel(); <-done }
	t.Cleanup(e.stop)
	return e
}

// TestLeaderIsCutOff takes the leader's line to Consul, without a word on either
// side: its term ends, and only then the other one's begins.
func TestLeaderIsCutOff(t *testing.T) {
	t.Parallel()
	key, line := fresh(t), newLiar(t)
	a := elect(t, line.URL, key, "a")
	first := receive(t, a.terms)
	b := elect(t, shared.Addr, key, "b")
	cut := time.Now()
	line.tell(func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() })
	ended := receive(t, a.ends)
	if first.Valid() || ended.Sub(cut) > 9*time.Second {
		t.Errorf("valid: %v, ended after %v", first.Valid(), ended.Sub(cut))
	}
	second := receive(t, b.terms)
	if took := time.Since(cut); took > 25*time.Second || time.Now().Before(ended) {
		t.Errorf("the other one leads after %v", took)
	}
	if second.Fence() <= first.Fence() {
		t.Errorf("fence %d after %d", second.Fence(), first.Fence())
	}
}

// TestLeaderHandsOver stops one after the other: each names itself in the key, and
// the next one leads soon.
func TestLeaderHandsOver(t *testing.T) {
	t.Parallel()
	key := fresh(t)
	electors := map[string]*elector{"a": elect(t, shared.Addr, key, "a"), "b": elect(t, shared.Addr, key, "b")}
	c, last, stopped := connect(t, shared.Addr), uint64(0), time.Now()
	for range 2 {
		var term *leader.Term
		select {
		case term = <-electors["a"].terms:
		case term = <-electors["b"].terms:
		case <-time.After(patience):
			t.Fatal("nobody leads")
		}
		if took := time.Since(stopped); took > 9*time.Second || term.Fence() <= last {
			t.Errorf("fence %d after %d, in %v", term.Fence(), last, took)
		}
		pair, _, err := c.api.KV().Get(key, nil)
		if err != nil || pair == nil || electors[string(pair.Value)] == nil {
			t.Fatalf("the key holds %+v and error %v", pair, err)
		}
		last, stopped = term.Fence(), time.Now()
		electors[string(pair.Value)].stop()
	}
	if pair, _, err := c.api.KV().Get(key, nil); err != nil || pair.Session != "" || len(pair.Value) > 0 {
		t.Errorf("in the end the key holds %+v, error %v", pair, err)
	}
}

// TestKeyIsDeleted: a session that lives on without its key holds no lock.
func TestKeyIsDeleted(t *testing.T) {
	t.Parallel()
	key := fresh(t)
	e := elect(t, shared.Addr, key, "a")
	first := receive(t, e.terms)
	if _, err := connect(t, shared.Addr).api.KV().Delete(key, nil); err != nil {
		t.Fatal(err)
	}
	if second := receive(t, e.terms); first.Valid() || second.Fence() <= first.Fence() {
		t.Errorf("fence %d after %d", second.Fence(), first.Fence())
	}
}

func receive[T any](t *testing.T, ch <-chan T) T {
	t.Helper()
	select {
	case v := <-ch:
		return v
	case <-time.After(patience):
		t.Fatal("nothing happens")
		panic("unreachable")
	}
}
