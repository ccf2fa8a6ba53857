package scheduler_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/topsail-serving/topsail/scheduler"
	"github.com/topsail-serving/topsail/serving"
)

// outcomes is what became of decisions, in order, as "from→to outcome".
func outcomes(all []serving.Decision) string {
	var b strings.Builder
	for _, d := range all {
		fmt.Fprintf(&b, "%s %d→%d %s %s; ", d.ModelID, d.From, d.To, d.Rule, d.Outcome)
	}
	return b.String()
}

func (w *world) wantJournal(when, want string) {
	w.Helper()
	if got := outcomes(w.journaled()); got != want {
		w.Errorf("%s, decisions are\n%s, want\n%s", when, got, want)
	}
}

func TestJournal(t *testing.T) {
	in(t, func(w *world) {
		w.lead()
		time.Sleep(1500 * time.Millisecond)
		w.apply(version(m1, &serving.ScaleSpec{Min: 2, Max: 5}, 0))
		all := w.journaled()
		want := serving.Decision{ModelID: m1, At: time.Now(), To: 2, Rule: "rollout", Outcome: "applied", Leader: "s1", Fence: 7}
		if len(all) == 1 {
			all[0].Reason, all[0].At = "", all[0].At.Local()
			want.Rule = all[0].Rule
		}
		if len(all) != 1 || all[0] != want {
			t.Errorf("decisions %#v, want %#v", all, want)
		}
		time.Sleep(time.Hour)
		w.wantJournal("when nothing changes", "")
	})
}

func TestDryRun(t *testing.T) {
	in(t, func(w *world) {
		w.deployed(m1, &serving.ScaleSpec{Min: 1, Max: 9}, 1)
		w.apply(version(m2, nil, 3))
		w.lock(func() {
			w.jobs[serving.ModelID{Model: "gone", Version: "1"}] = w.newJob(serving.ModelID{Model: "gone", Version: "1"}, 1, 0)
		})
		w.lead(func(c *scheduler.Config) { c.DryRun = true })
		time.Sleep(10 * time.Minute)
		if n := w.countCalls(); n != 0 || w.servingNow("m") != "1" {
			t.Errorf("%d changes, version %s serves", n, w.servingNow("m"))
		}
		got := w.journaled()
		if text := outcomes(got); len(got) != 2 || !strings.Contains(text, "m:2 0→3 fixed dry_run; ") || !strings.Contains(text, "gone:1 1→0 gone dry_run; ") {
			t.Errorf("decisions %s", text)
		}
	})
}

// TestJournals has one that fails and one that hangs beside one that works.
func TestJournals(t *testing.T) {
	in(t, func(w *world) {
		w.lead(func(c *scheduler.Config) { c.Journals = []scheduler.Journal{broken{}, stuck{}, w} })
		w.apply(version(m1, nil, 1))
		w.wantJournal("at once", "m:1 0→1 fixed applied; ")
		time.Sleep(3 * time.Second)
		w.wantMetric("lost to two of three", "topsail_scheduler_unrecorded_total 2", `topsail_scheduler_decisions_total{outcome="applied",rule="fixed"} 1`)
	})
}

type broken struct{}

func (broken) AddDecision(context.Context, serving.Decision) error { return errAway }

type stuck struct{}

func (stuck) AddDecision(ctx context.Context, _ serving.Decision) error {
	<-ctx.Done()
	return ctx.Err()
}

// TestANewerLeader ends the term of an older one.
func TestANewerLeader(t *testing.T) {
	in(t, func(w *world) {
		s := scheduler.New(scheduler.Config{
			Name: "s1", Catalog: w, Fleet: w, Demand: w, Replicas: replicas{w}, Wakes: w, Journals: []scheduler.Journal{fenced{}},
		})
		w.apply(version(m1, nil, 1))
		if err := s.Run(w.Context(), w); !errors.Is(err, serving.ErrFenced) {
			t.Errorf("the term ended with %v", err)
		}
	})
}

type fenced struct{}

func (fenced) AddDecision(context.Context, serving.Decision) error { return serving.ErrFenced }
