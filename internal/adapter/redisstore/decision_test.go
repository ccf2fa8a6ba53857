package redisstore

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/topsail-serving/topsail/serving"
	"github.com/topsail-serving/topsail/serving/catalog"
	"github.com/topsail-serving/topsail/test/contract"
	"github.com/topsail-serving/topsail/test/require"
)

// TestFence has a leader that does not know that it leads no longer.
func TestFence(t *testing.T) {
	cfg := config(t)
	old, leader := open(t, cfg), open(t, cfg)
	set := func(s *Store, version string, fence uint64, want error) {
		t.Helper()
		require.NoError(t, s.refresh(t.Context()))
		before := s.Catalog()
		cat, err := s.ApplyFenced(t.Context(), catalog.SetServing{serving.ModelID{Model: "m", Version: version}}, fence)
		if !errors.Is(err, want) || (cat == nil) != (want != nil) {
			t.Errorf("fence %d: got %v and error %v, want %v", fence, cat, err, want)
		}
		if want != nil && s.Catalog() != before {
			t.Error("the catalog has changed")
		}
	}
	decide := func(s *Store, fence uint64, want error) {
		t.Helper()
		if err := s.AddDecision(t.Context(), serving.Decision{Fence: fence}); !errors.Is(err, want) {
			t.Errorf("fence %d: got error %v, want %v", fence, err, want)
		}
	}
	apply(t, old, catalog.PutVersion{Version: version("m", "1")})
	apply(t, old, catalog.PutVersion{Version: version("m", "2")})
	set(old, "1", 9, nil)
	set(leader, "2", 10, nil) // not to be compared as text
	set(old, "1", 9, ErrFenced)
	decide(old, 9, ErrFenced)
	decide(leader, 10, nil)
	decide(leader, 11, nil)
	set(leader, "1", 10, ErrFenced)
	set(leader, "1", 11, nil)
	apply(t, old, putApp("a")) // who needs not lead is not fenced
	if got, err := old.Decisions(t.Context(), 10, serving.ModelID{}); err != nil || len(got) != 2 {
		t.Errorf("got %v and error %v", got, err)
	}
}

func TestDecisionsContract(t *testing.T) {
	contract.Decisions(t, func(t *testing.T) contract.DecisionStore { return open(t, config(t)) })
}

func TestDecisions(t *testing.T) {
	cfg := config(t)
	s := open(t, cfg)
	var want []serving.Decision
	for i := range 2*decisionPage + 10 {
		d := serving.Decision{
			ModelID: serving.ModelID{Model: fmt.Sprintf("m%d", i%10), Version: fmt.Sprint(i % 20)},
			At:      time.Unix(int64(i), 0).UTC(), From: i, To: i + 1, Rule: "capacity", Reason: "a reason",
			Outcome: "failed", Error: "why", Leader: "me", Fence: 3,
		}
		require.NoError(t, s.AddDecision(t.Context(), d))
		want = append(want, d)
	}
	d := dataOf(t, cfg)
	d.client.Do(t.Context(), "xadd", s.keys.decisions, "*", "write", "w", "decision", "{") // another release's
	d.client.Do(t.Context(), "xadd", s.keys.decisions, "*", "other", "o")

	for _, test := range []struct {
		n     int
		about serving.ModelID
		want  int
	}{
		{0, serving.ModelID{}, 0},
		{7, serving.ModelID{}, 7},
		{decisionPage - 2, serving.ModelID{}, decisionPage - 2},
		{decisionPage, serving.ModelID{}, decisionPage},
		{2000, serving.ModelID{}, len(want)},
		{2000, serving.ModelID{Model: "m7"}, len(want) / 10},
		{2000, serving.ModelID{Model: "m7", Version: "17"}, len(want) / 20},
		{3, serving.ModelID{Model: "m7"}, 3},
		{3, serving.ModelID{Model: "m"}, 0},
	} {
		got, err := open(t, cfg).Decisions(t.Context(), test.n, test.about)
		if err != nil || len(got) != test.want {
			t.Errorf("%+v: got %d and error %v", test, len(got), err)
		}
		next := len(want)
		for _, d := range got {
			for next--; next >= 0 && !want[next].Matches(test.about); next-- {
			}
			if next < 0 || d != want[next] {
				t.Fatalf("%+v: got %+v out of order or changed", test, d)
			}
		}
	}
}
