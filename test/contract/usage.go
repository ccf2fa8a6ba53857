package contract

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/topsail-serving/topsail/serving"
	"github.com/topsail-serving/topsail/serving/catalog"
	"github.com/topsail-serving/topsail/test/require"
)

// UsageStore is the seam of usage, beside the catalog whose apps and versions it is of.
type UsageStore interface {
	// Apply is that of CatalogStore. The usage of an app or version begins with its
	// registration and goes when it is deleted.
	Apply(ctx context.Context, change catalog.Change, ifRevision uint64) (*serving.Catalog, error)
	// AddUsage takes a report, once however often it comes: where its number is not above
	// all that its writer has sent, nothing changes. What it counts of an object that is
	// not in the catalog, or that was registered after the revision that the report names,
	// is left out.
	AddUsage(ctx context.Context, report serving.UsageReport) error
	// UsageOf is what is known of objects, in their order, each followed by its stages,
	// sorted. Objects of which nothing is known are left out.
	UsageOf(ctx context.Context, objects []serving.UsageKey) ([]serving.Usage, error)
}

// Usage runs the suite. open makes an empty store, which the test closes at its end:
// another returns it as another process has it, which may be the same one; reopen closes
// all of them and opens one on the same data; forget drops all usage, as it is missing
// in the data of a release that did not count.
func Usage(t *testing.T, open func(t *testing.T) (another, reopen func() UsageStore, forget func())) {
	tests := []struct {
		name string
		run  func(s usages)
	}{
		{"nothing", usages.none},
		{"registered", usages.registered},
		{"counted", usages.counted},
		{"stages", usages.stages},
		{"the last failure", usages.lastFailure},
		{"repeats", usages.repeats},
		{"gaps", usages.gaps},
		{"what is not in the catalog", usages.unknown},
		{"what is deleted", usages.deleted},
		{"what is registered again", usages.again},
		{"what is changed", usages.changed},
		{"what an older release registered", usages.older},
		{"large numbers", usages.large},
		{"bounded", usages.bounded},
		{"500 models", usages.many},
		{"a restart", usages.restart},
		{"concurrent processes", usages.concurrent},
		{"an ended context", usages.endedContext},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			another, reopen, forget := open(t)
			test.run(usages{T: t, store: another(), another: another, reopen: reopen, forget: forget})
		})
	}
}

type usages struct {
	*testing.T
	store   UsageStore
	another func() UsageStore
	reopen  func() UsageStore
	forget  func()
}

func ofApp(name string) serving.UsageKey { return serving.UsageKey{App: name} }

func ofVersion(model, version string) serving.UsageKey {
	return serving.UsageKey{ModelID: id(model, version)}
}

func ofStage(object serving.UsageKey, stage string) serving.UsageKey {
	object.Stage = stage
	return object
}

// outputs is so many that took 2 ms each.
func outputs(of serving.UsageKey, n uint64) serving.Usage {
	return serving.Usage{Key: of, Answers: n, Micros: 2000 * n, Least: 2 * time.Millisecond, Most: 2 * time.Millisecond}
}

func (s usages) apply(changes ...catalog.Change) (revision uint64) {
	s.Helper()
	for _, change := range changes {
		cat, err := s.store.Apply(s.Context(), change, 0)
		if err != nil {
			s.Fatalf("%#v: %v", change, err)
		}
		revision = cat.Revision
	}
	return revision
}

// report is one that knows every object there is.
func report(writer string, number uint64, counted ...serving.Usage) serving.UsageReport {
	return serving.UsageReport{Writer: writer, Number: number, Revision: 1 << 40, Counted: counted}
}

func (s usages) add(r serving.UsageReport) {
	s.Helper()
	if err := s.store.AddUsage(s.Context(), r); err != nil {
		s.Fatalf("report %d of %s: %v", r.Number, r.Writer, err)
	}
}

// of is the usage of objects, as another process reads it.
func (s usages) of(objects ...serving.UsageKey) []serving.Usage {
	s.Helper()
	all, err := s.another().UsageOf(s.Context(), objects)
	require.NoError(s, err)
	return all
}

// want compares the usage of objects, but for when they were registered.
func (s usages) want(objects []serving.UsageKey, want ...serving.Usage) {
	s.Helper()
	got := s.of(objects...)
	for i := range got {
		got[i].Since = time.Time{}
		if got[i].Last != nil {
			got[i].Last.At = got[i].Last.At.UTC()
		}
	}
	if !reflect.DeepEqual(got, want) {
		s.Fatalf("got\n%+v\nwant\n%+v", got, want)
	}
}

func (s usages) none() {
	s.want([]serving.UsageKey{ofApp("a"), ofVersion("m", "1")})
	s.want(nil)
	s.add(report("w", 1))
}

func (s usages) registered() {
	before := time.Now().Add(-time.Millisecond)
	s.apply(catalog.PutVersion{Version: version("m", "1")}, catalog.PutApp{App: app("a", "m")})
	after := time.Now()
	all := s.of(ofApp("a"), ofVersion("m", "1"), ofVersion("m", "2"))
	if len(all) != 2 || all[0].Key != ofApp("a") || all[1].Key != ofVersion("m", "1") {
		s.Fatalf("got %+v", all)
	}
	for _, u := range all {
		if u.Since.Before(before) || u.Since.After(after) || !u.Empty() {
			s.Errorf("%v: got %+v, which was registered between %v and %v", u.Key, u, before, after)
		}
	}
}

func (s usages) counted() {
	s.apply(catalog.PutVersion{Version: version("m", "1")}, catalog.PutApp{App: app("a", "m")})
	first := serving.Usage{
		Key: ofVersion("m", "1"), Answers: 3, Cached: 5, Failed: 2, Missed: 7, Micros: 1234,
		Least: 100 * time.Nanosecond, Most: 900 * time.Microsecond,
	}
	s.add(report("w", 1, first, outputs(ofApp("a"), 4)))
	s.want([]serving.UsageKey{ofApp("a"), ofVersion("m", "1")}, outputs(ofApp("a"), 4), first)

	s.add(report("w", 2, serving.Usage{Key: ofVersion("m", "1"), Missed: 1})) // nothing answered: 0 is not the least
	s.add(report("w", 3, serving.Usage{Key: ofVersion("m", "1"), Answers: 1, Micros: 2000, Least: 2 * time.Millisecond, Most: 2 * time.Millisecond}))
	s.add(report("w", 4, serving.Usage{Key: ofVersion("m", "1"), Answers: 1, Least: 99, Most: 99}))
	s.want([]serving.UsageKey{ofVersion("m", "1")}, serving.Usage{
		Key: ofVersion("m", "1"), Answers: 5, Cached: 5, Failed: 2, Missed: 8, Micros: 3234, Least: 99, Most: 2 * time.Millisecond,
	})
}

func (s usages) stages() {
	s.apply(catalog.PutVersion{Version: version("m", "1")}, catalog.PutApp{App: app("a", "m")})
	v := ofVersion("m", "1")
	s.add(report("w", 1, outputs(ofStage(v, "rank"), 1), outputs(v, 2), outputs(ofStage(v, "embed"), 3), outputs(ofStage(ofApp("a"), "rank"), 4)))
	s.add(report("w", 2, outputs(ofStage(v, "embed"), 1)))
	want := []serving.Usage{outputs(v, 2), outputs(ofStage(v, "embed"), 4), outputs(ofStage(v, "rank"), 1)}
	s.want([]serving.UsageKey{v, ofApp("a")}, append(want, serving.Usage{Key: ofApp("a")}, outputs(ofStage(ofApp("a"), "rank"), 4))...)
	s.want([]serving.UsageKey{ofStage(v, "embed")}, want...) // a stage stands for its object
}

func (s usages) lastFailure() {
	s.apply(catalog.PutVersion{Version: version("m", "1")})
	failed := func(ms int64, message string) serving.Usage {
		return serving.Usage{Key: ofVersion("m", "1"), Failed: 1, Last: &serving.UsageFailure{At: time.UnixMilli(ms).UTC(), Cause: "model_error", Message: message}}
	}
	want := func(n uint64, u serving.Usage) {
		s.Helper()
		u.Failed = n
		s.want([]serving.UsageKey{u.Key}, u)
	}
	first, second := failed(1_000_000_000_000, "ValueError: \"\u00e9\x00\u2028\" is no number"), failed(1_000_000_000_500, "")
	s.add(report("w", 1, first))
	want(1, first)
	s.add(report("v", 1, second))
	want(2, second)
	s.add(report("w", 2, first)) // another process saw it, earlier
	want(3, second)
	s.add(report("w", 3, serving.Usage{Key: ofVersion("m", "1"), Failed: 1})) // another one that nobody has the words of
	want(4, second)
}

func (s usages) repeats() {
	s.apply(catalog.PutVersion{Version: version("m", "1")})
	v := ofVersion("m", "1")
	for number := range uint64(3) {
		for range 3 {
			s.add(report("w", number+1, outputs(v, 10)))
		}
	}
	s.want([]serving.UsageKey{v}, outputs(v, 30))
	s.add(report("w", 1, outputs(v, 1000))) // one that was late
	s.add(report("w", 0, outputs(v, 1000)))
	s.want([]serving.UsageKey{v}, outputs(v, 30))
	s.add(report("w", 4, outputs(v, 1)))
	s.want([]serving.UsageKey{v}, outputs(v, 31))
}

func (s usages) gaps() {
	s.apply(catalog.PutVersion{Version: version("m", "1")})
	v := ofVersion("m", "1")
	s.add(report("w", 5, outputs(v, 1))) // those before went with an older copy of the store
	s.add(report("w", 1<<50, outputs(v, 1)))
	s.want([]serving.UsageKey{v}, outputs(v, 2))
	for _, late := range []uint64{0, 1, 4, 5, 6, 1 << 50} {
		s.add(report("w", late, outputs(v, 1000)))
	}
	s.want([]serving.UsageKey{v}, outputs(v, 2))
	s.add(report("another", 3, outputs(v, 1)))
	s.want([]serving.UsageKey{v}, outputs(v, 3))
}

func (s usages) unknown() {
	s.apply(catalog.PutVersion{Version: version("m", "1")})
	s.add(report("w", 1, outputs(ofApp("b"), 1), outputs(ofVersion("m", "2"), 1), outputs(ofVersion("m", "1"), 1), outputs(ofStage(ofVersion("n", "1"), "s"), 1)))
	all := []serving.UsageKey{ofApp("b"), ofVersion("m", "1"), ofVersion("m", "2"), ofVersion("n", "1")}
	s.want(all, outputs(ofVersion("m", "1"), 1))
	s.apply(catalog.PutVersion{Version: version("m", "2")}, catalog.PutVersion{Version: version("n", "1")}, catalog.PutApp{App: app("b")})
	s.want(all, serving.Usage{Key: ofApp("b")}, outputs(ofVersion("m", "1"), 1), serving.Usage{Key: ofVersion("m", "2")}, serving.Usage{Key: ofVersion("n", "1")})
}

func (s usages) deleted() {
	s.apply(catalog.PutVersion{Version: version("m", "1")}, catalog.PutVersion{Version: version("m", "2")}, catalog.PutVersion{Version: version("n", "1")},
		catalog.PutApp{App: app("a")}, catalog.PutApp{App: app("b")})
	all := []serving.UsageKey{ofApp("a"), ofApp("b"), ofVersion("m", "1"), ofVersion("m", "2"), ofVersion("n", "1")}
	var counted []serving.Usage
	for _, object := range all {
		counted = append(counted, outputs(object, 1), outputs(ofStage(object, "s"), 1))
	}
	s.add(report("w", 1, counted...))
	s.want(all, counted...)
	s.apply(catalog.DeleteApp{Name: "a"}, catalog.DeleteVersion{ID: id("n", "1")})
	s.want(all, counted[2:8]...)
	s.apply(catalog.DeleteModel{Name: "m"})
	s.want(all, counted[2:4]...)
	s.add(report("w", 2, counted...))
	s.want([]serving.UsageKey{ofVersion("m", "1"), ofVersion("m", "2"), ofVersion("n", "1"), ofApp("a")})
}

// again has reports on their way while a version goes and comes back: each is of what it
// was counted of.
func (s usages) again() {
	v := ofVersion("m", "1")
	old := report("w", 1, outputs(v, 100))
	old.Revision = s.apply(catalog.PutVersion{Version: version("m", "1")})
	first := s.of(v)[0].Since
	s.apply(catalog.DeleteVersion{ID: id("m", "1")})
	revision := s.apply(catalog.PutVersion{Version: version("m", "1")})
	s.add(old)
	s.want([]serving.UsageKey{v}, serving.Usage{Key: v})
	if since := s.of(v)[0].Since; since.Before(first) {
		s.Errorf("registered at %v, and again at %v", first, since)
	}
	now := report("w", 2, outputs(v, 1))
	now.Revision = revision
	s.add(now)
	s.want([]serving.UsageKey{v}, outputs(v, 1))
}

// changed has objects change, which does not begin them anew.
func (s usages) changed() {
	s.apply(catalog.PutVersion{Version: version("m", "1")}, catalog.PutApp{App: app("a", "m")})
	all := []serving.UsageKey{ofApp("a"), ofVersion("m", "1")}
	s.add(report("w", 1, outputs(ofApp("a"), 1), outputs(ofVersion("m", "1"), 2)))
	before := s.of(all...)
	faster := app("a", "m")
	faster.SLO = serving.Duration(5 * time.Millisecond)
	revision := s.apply(catalog.PutApp{App: faster}, catalog.SetScale{ID: id("m", "1"), Replicas: 3}, catalog.PutVersion{Version: version("m", "2")})
	if got := s.of(all...); !reflect.DeepEqual(got, before) {
		s.Fatalf("got %+v, want %+v", got, before)
	}
	late := report("w", 2, outputs(ofApp("a"), 1))
	late.Revision = revision - 1 // what was counted before the change is of the same app
	s.add(late)
	s.want(all, outputs(ofApp("a"), 2), outputs(ofVersion("m", "1"), 2))
}

// older has objects that are counted from the first report on.
func (s usages) older() {
	revision := s.apply(catalog.PutVersion{Version: version("m", "1")}, catalog.PutApp{App: app("a", "m")})
	s.forget()
	all := []serving.UsageKey{ofApp("a"), ofVersion("m", "1")}
	s.want(all)
	before := time.Now().Add(-time.Millisecond)
	r := report("w", 1, outputs(ofApp("a"), 2))
	r.Revision = revision
	s.add(r)
	s.want(all, outputs(ofApp("a"), 2))
	if since := s.of(all...)[0].Since; since.Before(before) || since.After(time.Now()) {
		s.Errorf("since %v, and it was first counted after %v", since, before)
	}
}

func (s usages) large() {
	s.apply(catalog.PutVersion{Version: version("m", "1")})
	much := serving.Usage{
		Key: ofVersion("m", "1"), Answers: 1<<60 + 1, Cached: 1<<60 + 1, Failed: 1<<60 + 1, Missed: 1<<60 + 1, Micros: 1<<60 + 1,
		Least: 1, Most: 10 * 24 * time.Hour,
	}
	s.add(report("w", 1, much))
	s.add(report("w", 2, much))
	twice := much
	twice.Add(much)
	s.want([]serving.UsageKey{ofVersion("m", "1")}, twice)
}

func (s usages) bounded() {
	s.apply(catalog.PutVersion{Version: version("m", "1")})
	var counted []serving.Usage
	for i := range serving.MaxUsageReport {
		counted = append(counted, outputs(ofStage(ofVersion("m", "1"), fmt.Sprintf("s%d", i)), 1))
	}
	counted[len(counted)-1] = outputs(ofVersion("m", "1"), 1)
	s.add(report("w", 1, counted...))
	got := s.of(ofVersion("m", "1"))
	if n := len(got) - 1; n < serving.MaxUsageStages/2 || n > 4*serving.MaxUsageStages || got[0].Answers != 1 {
		s.Errorf("kept %d stages, and of the version itself %+v", n, got[0])
	}
	known := got[len(got)-1]
	s.add(report("v", 1, outputs(known.Key, 1)))
	if again := s.of(known.Key); !slices.ContainsFunc(again, func(u serving.Usage) bool { return u.Key == known.Key && u.Answers == 2*known.Answers }) {
		s.Errorf("a stage that is counted already is not any more: %+v", known)
	}
	if err := s.store.AddUsage(s.Context(), report("w", 2, append(counted, counted[0])...)); err == nil {
		s.Errorf("too many counts: %v", err)
	}
	s.add(report("w", 2))
}

func (s usages) many() {
	const models, reports = 500, 3
	objects := make([]serving.UsageKey, 0, models)
	imported := catalog.Import{Current: map[string]string{}}
	for i := range models {
		name := fmt.Sprintf("m%d", i)
		imported.Versions = append(imported.Versions, version(name, "1"))
		imported.Current[name] = "1"
		objects = append(objects, ofVersion(name, "1"))
	}
	s.apply(imported)
	var counted []serving.Usage
	for i, object := range objects {
		counted = append(counted, outputs(object, uint64(i+1)))
	}
	for number := range uint64(reports) {
		s.add(report("w", number+1, counted...))
		s.add(report("w", number+1, counted...))
	}
	got := s.of(objects...)
	if len(got) != models {
		s.Fatalf("%d of %d models", len(got), models)
	}
	for i, u := range got {
		if u.Key != objects[i] || u.Answers != reports*uint64(i+1) || u.Since.IsZero() {
			s.Fatalf("%v: %+v", objects[i], u)
		}
	}
}

func (s usages) restart() {
	s.apply(catalog.PutVersion{Version: version("m", "1")}, catalog.PutApp{App: app("a", "m")})
	all := []serving.UsageKey{ofVersion("m", "1"), ofApp("a")}
	last := outputs(all[0], 7)
	last.Failed, last.Last = 1, &serving.UsageFailure{At: time.UnixMilli(1_000_000_000_000).UTC(), Cause: "container_error", Message: "it died"}
	s.add(report("w", 1, last, outputs(ofStage(all[1], "s"), 2)))
	s.add(report("w", 2, outputs(all[0], 1)))
	before := s.of(all...)
	s.store = s.reopen()
	s.another = func() UsageStore { return s.store }
	if got := s.of(all...); !reflect.DeepEqual(got, before) {
		s.Fatalf("got\n%+v, want\n%+v", got, before)
	}
	s.add(report("w", 2, outputs(all[0], 1))) // who sent it does not know that it arrived
	s.add(report("w", 1, outputs(all[0], 1)))
	if got := s.of(all...); !reflect.DeepEqual(got, before) {
		s.Fatalf("got\n%+v, want\n%+v", got, before)
	}
	s.add(report("w", 3, outputs(all[0], 1)))
	if got := s.of(all[0]); got[0].Answers != before[0].Answers+1 || !got[0].Since.Equal(before[0].Since) {
		s.Fatalf("got %+v", got)
	}
}

// concurrent has processes report side by side, each report several times and some at
// once, while the catalog changes.
func (s usages) concurrent() {
	const processes, reports = 8, 20
	s.apply(catalog.PutVersion{Version: version("m", "1")}, catalog.PutApp{App: app("a", "m")})
	var all sync.WaitGroup
	for p := range processes {
		store := s.another()
		all.Go(func() {
			for number := range uint64(reports) {
				r := report(fmt.Sprintf("p%d", p), number+1, outputs(ofVersion("m", "1"), 1), outputs(ofApp("a"), 2))
				var sends sync.WaitGroup
				for range 1 + rand.IntN(3) {
					sends.Go(func() {
						if err := store.AddUsage(s.Context(), r); err != nil {
							s.Errorf("report %d of %s: %v", r.Number, r.Writer, err)
						}
					})
				}
				sends.Wait()
			}
		})
	}
	all.Go(func() {
		for i := range 10 {
			if _, err := s.store.Apply(s.Context(), catalog.PutVersion{Version: version("m", fmt.Sprint(i+2))}, 0); err != nil {
				s.Errorf("register: %v", err)
			}
		}
	})
	all.Wait()
	s.want([]serving.UsageKey{ofVersion("m", "1"), ofApp("a")}, outputs(ofVersion("m", "1"), processes*reports), outputs(ofApp("a"), 2*processes*reports))
}

func (s usages) endedContext() {
	s.apply(catalog.PutVersion{Version: version("m", "1")})
	ctx, cancel := context.WithCancelCause(s.Context())
	why := errors.New("no longer wanted")
	cancel(why)
	if err := s.store.AddUsage(ctx, report("w", 1, outputs(ofVersion("m", "1"), 1))); !errors.Is(err, why) {
		s.Errorf("reported with error %v", err)
	}
	if all, err := s.store.UsageOf(ctx, []serving.UsageKey{ofVersion("m", "1")}); !errors.Is(err, why) || all != nil {
		s.Errorf("read %v with error %v", all, err)
	}
	s.want([]serving.UsageKey{ofVersion("m", "1")}, serving.Usage{Key: ofVersion("m", "1")})
}
