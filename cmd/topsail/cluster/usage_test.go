package cluster

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/topsail-serving/topsail/internal/adapter/nomadfleet"
	"github.com/topsail-serving/topsail/web/api"
)

// TestUsages asks about all in turn, a few at a time, and forgets those that are gone.
func TestUsages(t *testing.T) {
	var asked []string
	u := &usages{ask: func(_ context.Context, replica string) (nomadfleet.Usage, error) {
		asked = append(asked, replica)
		if replica == "away" {
			return nomadfleet.Usage{Memory: 1}, errors.New("its node does not answer")
		}
		return nomadfleet.Usage{Cores: 0.5, Memory: 1 << 20, GPUMemory: 1 << 30}, nil
	}}
	list := []nomadfleet.Replica{{ID: "away", State: nomadfleet.Running}, {ID: "ended", State: nomadfleet.Failed}}
	for i := range 2 * usagesEach {
		list = append(list, nomadfleet.Replica{ID: fmt.Sprint("r", i), State: nomadfleet.Running})
	}
	now := time.Now()
	for range 3 {
		u.look(t.Context(), list, now)
		now = now.Add(time.Millisecond)
	}
	if slices.Sort(asked); len(slices.Compact(slices.Clone(asked))) != 2*usagesEach+1 || len(asked) != 2*usagesEach+1 || slices.Contains(asked, "ended") {
		t.Errorf("asked about %v", asked)
	}
	of := func(id string) api.Replica {
		r := api.Replica{ID: id}
		u.fill(&r)
		return r
	}
	if r := of("r3"); r.CPU != 0.5 || r.Memory != 1<<20 || r.GPUMemory != 1<<30 {
		t.Errorf("%+v", r)
	}
	for _, id := range []string{"away", "ended", "unknown"} {
		if r := of(id); r.Memory != 0 {
			t.Errorf("%+v", r)
		}
	}
	u.look(t.Context(), list[:2], now.Add(usageFresh))
	if len(asked) != 2*usagesEach+2 || of("r3").Memory != 0 || len(u.known) != 1 {
		t.Errorf("asked %d times, %v is known", len(asked), u.known)
	}
}
