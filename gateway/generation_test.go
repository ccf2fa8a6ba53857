package gateway_test

import (
	"log/slog"
	"testing"

	"pgregory.net/rapid"

	"github.com/topsail-serving/topsail/internal/adapter/filestore"
	"github.com/topsail-serving/topsail/internal/adapter/inprocess"
	"github.com/topsail-serving/topsail/serving"
	"github.com/topsail-serving/topsail/serving/catalog"
	"github.com/topsail-serving/topsail/test/require"
)

// TestNoAnswerOfAnotherDefinition deploys, deletes, creates, applies, rolls back, edits
// under --watch and restarts at random, and asks through the cache all the while: every
// answer, and every stage of one, is of a definition that was in force when the query came,
// or later, and no policy learns of one what another has said.
func TestNoAnswerOfAnotherDefinition(t *testing.T) {
	log := slog.New(slog.DiscardHandler)
	var tally tally
	rapid.Check(t, func(rt *rapid.T) {
		dir := t.TempDir()
		var failed any // rapid stops a case by a panic, which has to leave the bubble
		bubble(t, func(t *world) {
			defer func() { failed = recover() }()
			play(rt, t.on, &tally, func() (stores, error) {
				store, err := filestore.Open(dir, log)
				return stores{store, inprocess.NewRecords()}, err
			})
		})
		if failed != nil {
			panic(failed)
		}
	})
	if tally.all == 0 || tally.cached == 0 {
		t.Errorf("it shows nothing: %+v", tally)
	}
}

// tally is what came of all stories, which shows nothing if next to nothing was answered.
type tally struct {
	asked    int            // queries
	could    int            // of those, with a replica of all that they needed
	answered map[string]int // of those, by app
	all      int            // answered
	cached   int            // of all
	fresh    int            // feedback on what a definition has said that is in force, and was learned
	stale    int            // feedback that was joined with a record of another definition
	learned  float64        // what states held in the end of answers that were right
}

// step changes something.
func (s *story) step() {
	model := rapid.SampledFrom([]string{"m", "m", "m", "n", "h", "h", "house"}).Draw(s.T, "model")
	v := version(model, rapid.SampledFrom([]string{"1", "2"}).Draw(s.T, "version"), rapid.IntRange(1, 3).Draw(s.T, "content"))
	replace := rapid.Bool().Draw(s.T, "replace")
	switch what := rapid.SampledFrom([]string{"deploy", "delete", "create", "apply", "merge", "roll back", "edit", "scale", "takes over", "restart"}).Draw(s.T, "step"); what {
	case "deploy":
		s.change(catalog.PutVersion{Version: *v, Replace: replace})
	case "delete":
		s.change(catalog.DeleteVersion{ID: v.ModelID})
	case "create":
		s.change(catalog.DeleteVersion{ID: v.ModelID})
		s.change(catalog.PutVersion{Version: *v})
	case "apply":
		s.change(catalog.Import{Versions: []serving.Version{*v}, Keep: true, Replace: replace})
	case "merge":
		_, err := s.store.MergeFile(s.ctx, nil, []serving.Version{*v}, nil)
		s.changed(err)
	case "roll back":
		s.change(catalog.SetCurrent{ID: v.ModelID})
	case "edit":
		if old := s.store.Catalog().Version(v.ModelID); old != nil {
			s.change(catalog.Renew{Old: old.Definition()})
		}
	case "scale":
		s.change(catalog.SetScale{ID: v.ModelID, Replicas: 2})
	case "takes over": // as the scheduler says it
		if s.now().ready[model] {
			s.change(catalog.SetServing{{Model: model, Version: s.store.Catalog().Models[model].Current}})
		}
	case "restart":
		s.check()
		s.stop()
		require.NoError(s, s.store.Close())
		s.begin()
	}
	for _, app := range apps { // links go with the last version
		if app.Stages == nil {
			s.change(catalog.Link{App: app.Name, Model: app.Models[0]})
		}
	}
}
