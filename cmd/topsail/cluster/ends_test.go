package cluster

import (
	"context"
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/topsail-serving/topsail/internal/adapter/nomadfleet"
)

// TestEnds: a reason says what the container did, which is read once for each time that it ended.
func TestEnds(t *testing.T) {
	reads, stderr := 0, "INFO topsail: loading\nTraceback (most recent call last):\n  File \"m.py\"\nKeyError: 'a'\n"
	e := &ends{read: func(_ context.Context, replica string, q nomadfleet.LogQuery) (io.ReadCloser, error) {
		reads++
		switch {
		case replica == "away":
			return nil, errors.New("its node does not answer")
		case replica == "prints" && q.Stderr:
			return io.NopCloser(strings.NewReader("")), nil
		case replica == "prints":
			return io.NopCloser(strings.NewReader(strings.Repeat("x", endingBytes-10) + "\nno model\n")), nil
		}
		return io.NopCloser(strings.NewReader(stderr)), nil
	}}
	list := func(restarts int) []nomadfleet.Replica {
		return []nomadfleet.Replica{
			{ID: "fine", State: nomadfleet.Running},
			{ID: "ends", State: nomadfleet.Starting, Restarts: restarts, Reason: "ended with exit code 1"},
			{ID: "away", State: nomadfleet.Failed, Reason: "ended with exit code 1"},
			{ID: "prints", State: nomadfleet.Failed, Reason: "ended with exit code 1"},
		}
	}
	look := func(restarts int) string {
		all := list(restarts)
		e.tell(t.Context(), all)
		var reasons []string
		for _, r := range all {
			reasons = append(reasons, r.Reason)
		}
		return strings.Join(reasons, "; ")
	}
	want := "; ended with exit code 1: KeyError: 'a'; ended with exit code 1; ended with exit code 1: no model"
	for range 3 {
		if got := look(1); got != want || reads != 4 {
			t.Errorf("after %d reads %q, want %q", reads, got, want)
		}
	}
	stderr = "topsail: no GPU\n"
	if got := look(2); reads != 5 || !strings.Contains(got, "exit code 1: no GPU;") {
		t.Errorf("after another end, %d reads: %q", reads, got)
	}
	e.tell(t.Context(), nil)
	if len(e.known) != 0 {
		t.Errorf("%v is kept of replicas that are gone", e.known)
	}
	many := make([]nomadfleet.Replica, 10)
	for i := range many {
		many[i] = nomadfleet.Replica{ID: string(rune('a' + i)), State: nomadfleet.Failed, Reason: "ended"}
	}
	reads = 0
	if e.tell(t.Context(), many); reads != endsEach {
		t.Errorf("%d were read at once", reads)
	}
}
