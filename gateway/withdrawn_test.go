package gateway_test

import (
	"bytes"
	"context"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/topsail-serving/topsail/gateway"
	"github.com/topsail-serving/topsail/gateway/selection"
	"github.com/topsail-serving/topsail/gateway/selection/rollout"
	"github.com/topsail-serving/topsail/internal/adapter/inprocess"
	"github.com/topsail-serving/topsail/internal/obs"
	"github.com/topsail-serving/topsail/serving"
	"github.com/topsail-serving/topsail/test/require"
)

// oneState is a store of states that has room for one.
type oneState struct {
	mu       sync.Mutex
	text     []byte
	revision uint64
}

func (o *oneState) LoadState(context.Context, serving.StateKey) ([]byte, uint64, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text, o.revision, nil
}

func (o *oneState) SwapState(_ context.Context, _ serving.StateKey, revision uint64, text []byte) (uint64, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if revision != o.revision {
		return 0, serving.ErrStateConflict
	}
	o.text, o.revision = text, o.revision+1
	return o.revision, nil
}

func (o *oneState) SetStateAside(context.Context, serving.StateKey, uint64, string) (string, error) {
	return "", serving.ErrStateConflict
}

// A canary that was taken back while this gateway was away is told of all the same, and
// no more when the policy names another one.
func TestATakenBackCanaryIsToldOf(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tries := func(canary string) *serving.Catalog {
			cat := catalogOf(newVersion("m", "1"))
			cat.Models["m"].Versions["2"], cat.Models["m"].Versions["3"] = newVersion("m", "2"), newVersion("m", "3")
			cat.Apps["double-it"].Policy = serving.PolicySpec{Kind: serving.PolicyVersions, Canary: canary}
			return cat
		}
		store := &oneState{text: takenBack(t, tries("2")), revision: 1}
		catalogs, metrics := make(sequence), obs.NewRegistry()
		var log bytes.Buffer
		g := gateway.New(t.Context(), gateway.Config{
			Catalog: catalogs, Resolver: inprocess.NewRegistry(), States: store, Records: inprocess.NewRecords(),
			Metrics: metrics, Log: slog.New(slog.NewTextHandler(&log, nil)),
		})
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- g.Run(ctx, nil) }()
		defer func() { cancel(); <-ended }()
		for _, step := range []struct{ canary, stopped string }{{"2", "1"}, {"3", "0"}} {
			catalogs <- tries(step.canary)
			time.Sleep(3 * time.Second)
			synctest.Wait()
			if got := sample(metrics, "topsail_selection_withdrawn"); got != step.stopped {
				t.Errorf("canary %s: topsail_selection_withdrawn is %q, want %s", step.canary, got, step.stopped)
			}
		}
		if text := log.String(); strings.Count(text, "level=WARN") != 1 || !strings.Contains(text, "app=double-it reason=\"version 2 was withdrawn: 100 % of its last 50 answers") {
			t.Errorf("logged: %s", text)
		}
	})
}

// takenBack is the stored state of the app when its canary has failed.
func takenBack(t *testing.T, cat *serving.Catalog) []byte {
	t.Helper()
	app := cat.Apps["double-it"]
	policy := rollout.NewVersions(app.Policy, app.Models)
	ids := []serving.ModelID{{Model: "m", Version: "1"}, {Model: "m", Version: app.Policy.Canary}}
	state := policy.Observe(policy.New(ids), []selection.Tally{{ModelID: ids[0], Answers: 50}, {ModelID: ids[1], Failures: 50}}, time.Now())
	text, err := state.Encode()
	require.NoError(t, err)
	return text
}
