package nomadfleet

import (
	"cmp"
	"context"
	"errors"
	"io"
	"net/http"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/topsail-serving/topsail/serving"
)

// calls are what a Fleet is asked for that has one replica of the version, whose job is at index.
var calls = map[string]func(ctx context.Context, f *Fleet, index uint64) error{
	"jobs":     func(ctx context.Context, f *Fleet, _ uint64) error { _, err := f.Jobs(ctx); return err },
	"replicas": func(ctx context.Context, f *Fleet, _ uint64) error { _, err := f.Replicas(ctx); return err },
	"plan":     func(ctx context.Context, f *Fleet, _ uint64) error { _, err := f.Plan(ctx, asked, 0); return err },
	"diagnose": func(ctx context.Context, f *Fleet, _ uint64) error {
		d, err := f.Diagnose(ctx)
		return cmp.Or(err, d.Plan, d.List)
	},
	"register": func(ctx context.Context, f *Fleet, _ uint64) error {
		other := *asked
		other.Version = "2"
		return f.SetCount(ctx, &other, 0, serving.JobChange{Count: 1})
	},
	"scale": func(ctx context.Context, f *Fleet, index uint64) error {
		return f.SetCount(ctx, asked, 0, serving.JobChange{Count: 2, Index: index})
	},
	"remove": func(ctx context.Context, f *Fleet, index uint64) error {
		return f.Remove(ctx, asked.ModelID, serving.JobChange{Index: index})
	},
}

// requests are those that a Nomad which fails does not answer as it should.
var requests = map[string]func(*http.Request) bool{
	"all":      func(*http.Request) bool { return true },
	"writing":  func(r *http.Request) bool { return r.Method != http.MethodGet },
	"checking": func(r *http.Request) bool { return r.URL.Path == "/v1/validate/job" },
}

// answers say nothing of a job.
var answers = map[string]http.HandlerFunc{
	"500": func(w http.ResponseWriter, _ *http.Request) {
		http.Error(w, "No cluster leader", http.StatusInternalServerError)
	},
	"429": func(w http.ResponseWriter, _ *http.Request) {
		http.Error(w, "too many requests", http.StatusTooManyRequests)
	},
	"403":     func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "Permission denied", http.StatusForbidden) },
	"garbage": func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "<html>") },
	"cut": func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Length", "100")
		io.WriteString(w, `[{"ID": "x`)
	},
	"none": func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() },
}

// runs is a Nomad with one replica of the version, and the index of its job.
func runs(t *testing.T) (*fakeNomad, *Fleet, uint64) {
	n := newFakeNomad(t)
	f := n.fleet("")
	must(t, f, 1, 0)
	return n, f, after(t, 0, f).Index
}

// TestStrangeAnswers: a call with an answer that says nothing of a job is an error, at once or after its patience, and none
// that would have the scheduler take the job for refused or changed. It works once Nomad does.
func TestStrangeAnswers(t *testing.T) {
	for which, fails := range requests {
		for name, call := range calls {
			t.Run(which+" requests/"+name, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					n, f, index := runs(t)
					for kind, answer := range answers {
						asked := n.answerWith(fails, answer)
						began := time.Now()
						err := call(t.Context(), f, index)
						if !asked.Load() {
							return // it makes no such request
						}
						checkStrange(t, kind, err, time.Since(began))
					}
					n.intercept(nil)
					if err := call(t.Context(), f, index); err != nil {
						t.Errorf("once Nomad answers: got %v; want no error", err)
					}
				})
			})
		}
	}
}

// answerWith has some requests answered in another way, and notes that there was one.
func (n *fakeNomad) answerWith(fails func(*http.Request) bool, answer http.HandlerFunc) *atomic.Bool {
	var asked atomic.Bool
	n.intercept(func(w http.ResponseWriter, r *http.Request) bool {
		fail := fails(r)
		if fail {
			asked.Store(true)
			answer(w, r)
		}
		return fail
	})
	return &asked
}

func checkStrange(t *testing.T, kind string, err error, took time.Duration) {
	ofJob := errors.Is(err, serving.ErrJobRefused) || errors.Is(err, serving.ErrJobChanged) || errors.Is(err, serving.ErrJobBlocked)
	if err == nil || ofJob {
		t.Errorf("%s: got %v; want an error that is not of the job", kind, err)
	}
	want := time.Duration(0)
	if kind == "none" {
		want = patience
	}
	if took != want {
		t.Errorf("%s: got an error after %v; want it after %v", kind, took, want)
	}
}

// TestChangesInTime: changes are heard at once. Without one, jobs are looked at once a minute, and after each connection,
// of which the next is made 1 to 2 s after one that was lost or got no answer.
func TestChangesInTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n, began := newFakeNomad(t), time.Now()
		f := n.fleet("")
		heard := make(chan time.Time, 10)
		ctx, stop := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- f.Changes(ctx, func() { heard <- time.Now() }) }()
		expect := func(what string, late time.Duration, want ...time.Duration) {
			t.Helper()
			synctest.Wait()
			var got []time.Duration
			for len(heard) > 0 {
				got = append(got, (<-heard).Sub(began))
			}
			if !slices.EqualFunc(got, want, func(got, want time.Duration) bool { return want <= got && got <= want+late }) {
				t.Errorf("%s: got changes after %v; want them after %v, and up to %v later", what, got, want, late)
			}
			began = time.Now()
		}
		expect("a connection", 0, 0)
		must(t, f, 1, 0)
		expect("a job", 0, 0)
		time.Sleep(relistAfter * 2)
		expect("two minutes", 0, relistAfter, relistAfter*2)

		n.intercept(func(_ http.ResponseWriter, r *http.Request) bool { <-r.Context().Done(); return true })
		n.set(n.cut)
		time.Sleep(reconnect + patience)
		expect("no answer", 0)
		n.intercept(nil)
		time.Sleep(reconnect * 3)
		expect("an answer", reconnect*2, reconnect)
		stop()
		if err := <-done; !errors.Is(err, context.Canceled) {
			t.Errorf("got %v; want %v", err, context.Canceled)
		}
	})
}
