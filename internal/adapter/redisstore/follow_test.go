package redisstore

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"sync"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/topsail-serving/topsail/serving"
	"github.com/topsail-serving/topsail/serving/catalog"
	"github.com/topsail-serving/topsail/test/require"
)

// watch sends on the revisions that a Store calls back with, until the end of the test.
func watch(t testing.TB, s *Store) <-chan uint64 {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	seen := make(chan uint64, 1000)
	var watching sync.WaitGroup
	watching.Go(func() {
		s.Watch(ctx, func(cat *serving.Catalog) {
			select {
			case seen <- cat.Revision:
			case <-ctx.Done():
			}
		})
	})
	t.Cleanup(func() { cancel(); watching.Wait() })
	return seen
}

func awaitRevision(t testing.TB, seen <-chan uint64, want uint64) {
	t.Helper()
	for {
		select {
		case revision := <-seen:
			if revision >= want {
				return
			}
		case <-time.After(patience):
			t.Fatalf("revision %d does not come", want)
		}
	}
}

// result is a change and the catalog that Apply returned for it.
type result struct {
	change catalog.Change
	cat    *serving.Catalog
}

// TestNoUpdateLost has 8 processes write at once. Each revision has to be one
// catalog for all of them, and what a change makes of the revision before.
func TestNoUpdateLost(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		cfg := config(t)
		byRevision := map[uint64][]result{}
		for _, r := range writeAtOnce(t, rt, cfg, 8) {
			byRevision[r.cat.Revision] = append(byRevision[r.cat.Revision], r)
		}
		cat := &serving.Catalog{}
		for revision := range uint64(len(byRevision)) {
			results := byRevision[revision+1]
			made := func(r result) bool {
				next, err := catalog.Apply(cat, r.change, 0)
				return err == nil && next.Revision == revision+1 && definitions(t, next) == definitions(t, results[0].cat)
			}
			other := func(r result) bool { return encode(t, r.cat) != encode(t, results[0].cat) }
			if !slices.ContainsFunc(results, made) || slices.ContainsFunc(results, other) {
				rt.Fatalf("revision %d follows from no change, or is two: %s after %s", revision+1, encode(t, results), encode(t, cat))
			}
			cat = results[0].cat
		}
		s, err := Open(t.Context(), cfg)
		require.NoError(rt, err)
		defer s.Close()
		if cat.Revision > 0 && encode(t, s.Catalog()) != encode(t, cat) {
			rt.Fatalf("Redis holds %s, want %s", encode(t, s.Catalog()), encode(t, cat))
		}
	})
}

// definitions is a catalog without its generations, which are drawn.
func definitions(t testing.TB, cat *serving.Catalog) string {
	return regexp.MustCompile(`"generation":"[a-z2-7]{12}",`).ReplaceAllString(encode(t, cat), "")
}

// writeAtOnce has several Stores make changes at the same time, and returns those
// that made a revision or found their wish fulfilled by one.
func writeAtOnce(t *testing.T, rt *rapid.T, cfg Config, stores int) []result {
	results := make(chan result, 100)
	var writing sync.WaitGroup
	for range stores {
		script := rapid.SliceOfN(rapid.Custom(drawChange), 1, 6).Draw(rt, "script")
		writing.Go(func() {
			s, err := Open(t.Context(), cfg)
			if err != nil {
				t.Error(err)
				return
			}
			defer s.Close()
			for _, change := range script {
				if cat, err := s.Apply(t.Context(), change, 0); err == nil && cat.Revision > 0 {
					results <- result{change, cat}
				}
			}
		})
	}
	writing.Wait()
	close(results)
	var all []result
	for r := range results {
		all = append(all, r)
	}
	return all
}

// Few names, so that changes meet.
func drawChange(t *rapid.T) catalog.Change {
	a := app(rapid.SampledFrom([]string{"a", "b"}).Draw(t, "app"))
	v := version(rapid.SampledFrom([]string{"m", "n"}).Draw(t, "model"), rapid.SampledFrom([]string{"1", "2"}).Draw(t, "version"))
	switch rapid.IntRange(0, 7).Draw(t, "change") {
	case 0:
		return catalog.DeleteApp{Name: a.Name}
	case 1:
		return catalog.PutVersion{Version: v}
	case 2:
		return catalog.DeleteVersion{ID: v.ModelID}
	case 3:
		return catalog.Link{App: a.Name, Model: v.Model}
	case 4:
		return catalog.Unlink{App: a.Name, Model: v.Model}
	case 5:
		return catalog.SetCurrent{ID: v.ModelID}
	case 6:
		return catalog.SetScale{ID: v.ModelID, Replicas: rapid.IntRange(0, 9).Draw(t, "replicas")}
	}
	a.SLO = serving.Duration(time.Duration(rapid.IntRange(1, 1000).Draw(t, "slo")) * time.Millisecond)
	return catalog.PutApp{App: a}
}

// TestCount has 8 processes add one to the same number, again and again.
func TestCount(t *testing.T) {
	const stores, each = 8, 10
	cfg := config(t)
	apply(t, open(t, cfg), putApp("counter"))
	var counting sync.WaitGroup
	for range stores {
		s := open(t, cfg)
		counting.Go(func() {
			for done := 0; done < each; {
				cat := s.Catalog()
				next := *cat.Apps["counter"]
				next.SLO += serving.Duration(time.Microsecond)
				if _, err := s.Apply(t.Context(), catalog.PutApp{App: next}, cat.Revision); err == nil {
					done++
				}
			}
		})
	}
	counting.Wait()
	if got := open(t, cfg).Catalog().Apps["counter"].SLO.Std() - time.Second; got != stores*each*time.Microsecond {
		t.Errorf("counted to %v, want %d µs", got, stores*each)
	}
}

func BenchmarkCatalog(b *testing.B) {
	s := open(b, config(b))
	b.ReportAllocs()
	for b.Loop() {
		if s.Catalog() == nil {
			b.Fatal("no catalog")
		}
	}
}

// BenchmarkApply makes one change among some objects.
func BenchmarkApply(b *testing.B) {
	for _, objects := range []int{1, 1000} {
		b.Run(fmt.Sprint(objects), func(b *testing.B) {
			benchmarkApply(b, config(b), objects, func(uint64) {})
		})
	}
}

// BenchmarkPropagation is the way from Apply to the Watch of another process.
func BenchmarkPropagation(b *testing.B) {
	for _, objects := range []int{1, 200, 1000} {
		b.Run(fmt.Sprint(objects), func(b *testing.B) {
			cfg := config(b)
			seen := watch(b, follower(b, cfg))
			benchmarkApply(b, cfg, objects, func(revision uint64) { awaitRevision(b, seen, revision) })
		})
	}
}

func benchmarkApply(b *testing.B, cfg Config, objects int, then func(revision uint64)) {
	s := open(b, cfg)
	var versions []serving.Version
	for i := range objects {
		versions = append(versions, version(fmt.Sprint("model-", i), "1"))
	}
	if _, err := s.MergeFile(b.Context(), nil, versions, nil); err != nil {
		b.Fatal(err)
	}
	changed := app("b")
	b.ReportAllocs()
	for b.Loop() {
		changed.SLO += serving.Duration(time.Microsecond)
		then(apply(b, s, catalog.PutApp{App: changed}).Revision)
	}
}
