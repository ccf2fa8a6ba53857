package contract

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/topsail-serving/topsail/serving"
	"github.com/topsail-serving/topsail/test/require"
)

// DecisionStore is the seam of the history of decisions.
type DecisionStore interface {
	// AddDecision keeps a decision. The oldest go, when there are 1000 at the least.
	AddDecision(ctx context.Context, d serving.Decision) error
	// Decisions returns up to n decisions about a model version, the newest first. An
	// empty version stands for all of the model, an empty model for all models.
	Decisions(ctx context.Context, n int, about serving.ModelID) ([]serving.Decision, error)
}

// Decisions runs the suite. open makes an empty store, which the test closes at its end.
func Decisions(t *testing.T, open func(t *testing.T) DecisionStore) {
	tests := []struct {
		name string
		run  func(s decisions)
	}{
		{"none", decisions.none},
		{"the newest first", decisions.newest},
		{"about a model", decisions.about},
		{"an ended context", decisions.endedContext},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) { test.run(decisions{t, open(t)}) })
	}
}

type decisions struct {
	*testing.T
	store DecisionStore
}

func decision(i int) serving.Decision {
	return serving.Decision{
		ModelID: id(numbered("m", i%10), numbered("", i%20)), At: time.Date(2026, 1, 2, 3, 4, i, 678, time.UTC),
		From: i, To: i + 1, Rule: "capacity", Reason: "a reason", Outcome: "failed", Error: "why", Leader: "me", Fence: 3,
	}
}

// add adds decisions, and returns them the newest first.
func (s decisions) add(n int) (all []serving.Decision) {
	s.Helper()
	for i := range n {
		require.NoError(s, s.store.AddDecision(s.Context(), decision(i)))
		all = append(all, decision(i))
	}
	slices.Reverse(all)
	return all
}

func (s decisions) want(n int, about serving.ModelID, want []serving.Decision) {
	s.Helper()
	got, err := s.store.Decisions(s.Context(), n, about)
	if err != nil || !slices.Equal(got, want) {
		s.Fatalf("%d about %v: got %d and error %v, want %d:\n%+v\n%+v", n, about, len(got), err, len(want), got, want)
	}
}

func (s decisions) none() {
	s.want(10, serving.ModelID{}, nil)
	s.want(10, id("m", "1"), nil)
}

func (s decisions) newest() {
	all := s.add(600) // more than a store reads at once
	for _, n := range []int{0, 1, 7, 500, 599, 600, 10_000} {
		s.want(n, serving.ModelID{}, all[:min(n, len(all))])
	}
}

func (s decisions) about() {
	all := s.add(200)
	of := func(about serving.ModelID) (some []serving.Decision) {
		for _, d := range all {
			if d.Model == about.Model && (about.Version == "" || d.Version == about.Version) {
				some = append(some, d)
			}
		}
		return some
	}
	for about, want := range map[serving.ModelID]int{id("m7", ""): 20, id("m7", "17"): 10, id("m7", "8"): 0, id("m", ""): 0} {
		some := of(about)
		if len(some) != want {
			s.Fatalf("%d about %v", len(some), about)
		}
		s.want(1000, about, some)
		s.want(3, about, some[:min(3, want)])
	}
}

func (s decisions) endedContext() {
	s.add(1)
	ctx, cancel := context.WithCancel(s.Context())
	cancel()
	if err := s.store.AddDecision(ctx, decision(1)); !errors.Is(err, context.Canceled) {
		s.Errorf("added with error %v", err)
	}
	if got, err := s.store.Decisions(ctx, 10, serving.ModelID{}); !errors.Is(err, context.Canceled) || got != nil {
		s.Errorf("got %v and error %v", got, err)
	}
	s.want(10, serving.ModelID{}, []serving.Decision{decision(0)})
}
