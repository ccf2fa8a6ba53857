package predict

import (
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/topsail-serving/topsail/rpc"
	"github.com/topsail-serving/topsail/serving"
	"github.com/topsail-serving/topsail/test/require"
)

func TestALateOutputFillsTheCache(t *testing.T) {
	bubble(t, func(t *rig) {
		f := t.replica("a", echoes(slo+50*time.Millisecond), m1)
		t.serves(nil, m1)
		a, _ := t.predict(newQuery(7))
		t.wantDefault(a, serving.MissedSLO)
		time.Sleep(51 * time.Millisecond)
		a, took := t.predict(newQuery(7))
		t.wantOutput(a, 7)
		if !a.Cached || took != 0 || len(f.questions()) != 1 {
			t.Errorf("it took %v, %d questions: %+v", took, len(f.questions()), a)
		}
		for name, want := range map[string]float64{
			`topsail_gateway_late_outputs_total{app="app"}`:               1,
			`topsail_gateway_cache_total{app="app",result="missed"}`:      1,
			`topsail_gateway_cache_total{app="app",result="hit"}`:         1,
			`topsail_gateway_answers_total{app="app",cause="missed_slo"}`: 1,
			`topsail_gateway_answers_total{app="app",cause="ok"}`:         1,
			`topsail_gateway_answers_total{app="app",cause="draining"}`:   0,
			`topsail_gateway_query_seconds_count{app="app"}`:              2,
			`topsail_gateway_query_seconds_sum{app="app"}`:                (slo - margin).Seconds(),
		} {
			if got := t.metric(name); got != want {
				t.Errorf("%s is %v, want %v", name, got, want)
			}
		}
	})
}

func TestEqualQueriesInFlightAreOneQuestion(t *testing.T) {
	bubble(t, func(t *rig) {
		f := t.replica("a", echoes(30*time.Millisecond), m1)
		t.serves(nil, m1)
		var all sync.WaitGroup
		for i := range 20 {
			all.Go(func() {
				time.Sleep(time.Duration(i) * time.Millisecond)
				a, took := t.predict(newQuery(7))
				t.wantOutput(a, 7)
				if want := time.Duration(30-i) * time.Millisecond; took != want || a.Cached != (i > 0) {
					t.Errorf("query %d took %v, want %v: %+v", i, took, want, a)
				}
			})
		}
		all.Wait()
		if n := len(f.questions()); n != 1 {
			t.Errorf("%d questions were asked", n)
		}
		if n := t.metric(`topsail_gateway_cache_total{app="app",result="joined"}`); n != 19 {
			t.Errorf("%v counted as joined", n)
		}
	})
}

// A failure is everybody's who asked the same; it is not remembered.
func TestAFailureIsShared(t *testing.T) {
	bubble(t, func(t *rig) {
		slowly := func(arrival) (rpc.Answer, time.Duration) {
			return rpc.Answer{Status: rpc.StatusModelError, Message: []byte("no")}, 10 * time.Millisecond
		}
		f := t.replica("a", inTurn(slowly, echoes(0)), m1)
		t.serves(nil, m1)
		var all sync.WaitGroup
		for range 5 {
			all.Go(func() {
				a, _ := t.predict(newQuery(7))
				t.wantDefault(a, serving.ModelError)
			})
		}
		all.Wait()
		a, _ := t.predict(newQuery(7))
		t.wantOutput(a, 7)
		if n := len(f.questions()); n != 2 {
			t.Errorf("%d questions were asked", n)
		}
	})
}

// A query that joined a question with too early a deadline asks again by itself,
// and one that joins that joins the new question.
func TestAJoinerWithMoreTimeAsksAgain(t *testing.T) {
	for _, status := range []rpc.Status{rpc.StatusExpired, rpc.StatusLate} {
		t.Run(status.String(), func(t *testing.T) {
			bubble(t, func(t *rig) {
				tooLate := func(arrival) (rpc.Answer, time.Duration) {
					return rpc.Answer{Status: status, Message: []byte("no time")}, 15 * time.Millisecond
				}
				f := t.replica("a", inTurn(tooLate, echoes(20*time.Millisecond)), m1)
				t.serves(nil, m1)
				var all sync.WaitGroup
				all.Go(func() {
					q := newQuery(7)
					q.Timeout = 10 * time.Millisecond
					a, _ := t.predict(q)
					t.wantDefault(a, serving.MissedSLO)
				})
				time.Sleep(5 * time.Millisecond)
				var cached atomic.Int64
				for i := range 5 {
					all.Go(func() {
						a, took := t.predict(newQuery(7))
						t.wantOutput(a, 7)
						if took != 30*time.Millisecond {
							t.Errorf("joiner %d took %v", i, took)
						}
						if a.Cached {
							cached.Add(1)
						}
					})
				}
				all.Wait()
				if n := cached.Load(); n != 4 { // all but the one that retried
					t.Errorf("%d of 5 had the answer of another", n)
				}
				asked := f.questions()
				if len(asked) != 2 || asked[0].budget != 9500*time.Microsecond || asked[1].budget != slo-margin-10*time.Millisecond {
					t.Errorf("asked %+v", asked)
				}
				joined, missed := t.metric(`topsail_gateway_cache_total{app="app",result="joined"}`), t.metric(`topsail_gateway_cache_total{app="app",result="missed"}`)
				if joined != 9 || missed != 2 { // five, and four again
					t.Errorf("%v joined, %v missed", joined, missed)
				}
			})
		})
	}
}

// The one who opened the question does not ask again: it was refused for its own
// deadline. Nor does a joiner whose own time is up.
func TestWhoDoesNotAskAgain(t *testing.T) {
	bubble(t, func(t *rig) {
		f := t.replica("a", fails(rpc.StatusLate, "no time"), m1)
		t.serves(nil, m1)
		a, took := t.predict(newQuery(7))
		t.wantDefault(a, serving.RefusedLate)
		if len(f.questions()) != 1 || took != 0 {
			t.Errorf("%d questions, after %v", len(f.questions()), took)
		}
	})
	bubble(t, func(t *rig) {
		expired := func(arrival) (rpc.Answer, time.Duration) { return rpc.Answer{Status: rpc.StatusExpired}, slo }
		f := t.replica("a", expired, m1)
		t.serves(nil, m1)
		go t.predict(newQuery(7))
		time.Sleep(slo / 2)
		q := newQuery(7)
		q.Timeout = slo / 4
		a, _ := t.predict(q)
		t.wantDefault(a, serving.MissedSLO)
		time.Sleep(slo)
		if len(f.questions()) != 1 {
			t.Errorf("%d questions", len(f.questions()))
		}
	})
	bubble(t, func(t *rig) { // the question lands at the very instant of the joiner's deadline
		expired := func(arrival) (rpc.Answer, time.Duration) {
			return rpc.Answer{Status: rpc.StatusExpired}, 30 * time.Millisecond
		}
		f := t.replica("a", expired, m1)
		t.serves(nil, m1)
		go t.predict(newQuery(7))
		time.Sleep(5 * time.Millisecond)
		q := newQuery(7)
		q.Timeout = 25*time.Millisecond + margin
		a, took := t.predict(q)
		t.wantDefault(a, serving.MissedSLO)
		t.settle()
		if len(f.questions()) != 1 || took != 25*time.Millisecond {
			t.Errorf("%d questions, after %v", len(f.questions()), took)
		}
	})
}

// no_cache neither reads, nor joins, nor stores.
func TestNoCache(t *testing.T) {
	for name, change := range map[string]struct {
		app      func(*serving.App)
		newQuery bool
	}{
		"the query says so": {nil, true},
		"the app says so":   {func(a *serving.App) { a.Cache.Off = true }, false},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *rig) {
				f := t.replica("a", echoes(10*time.Millisecond), m1)
				t.serves(change.app, m1)
				ask := func() {
					q := newQuery(7)
					q.NoCache = change.newQuery
					a, took := t.predict(q)
					t.wantOutput(a, 7)
					if a.Cached || took != 10*time.Millisecond {
						t.Errorf("it took %v: %+v", took, a)
					}
				}
				var all sync.WaitGroup
				for range 3 {
					all.Go(ask)
				}
				all.Wait()
				ask()
				if n := len(f.questions()); n != 4 || t.cache.Len() != 0 {
					t.Errorf("%d questions, %d cached", n, t.cache.Len())
				}
				for _, result := range []string{"hit", "joined", "missed"} {
					if n := t.metric(`topsail_gateway_cache_total{app="app",result="` + result + `"}`); n != 0 {
						t.Errorf("%v counted as %s", n, result)
					}
				}
			})
		})
	}
	bubble(t, func(t *rig) { // it does not read what others stored either
		f := t.replica("a", echoes(10*time.Millisecond), m1)
		t.serves(nil, m1)
		t.predict(newQuery(7))
		q := newQuery(7)
		q.NoCache = true
		if a, took := t.predict(q); a.Cached || took == 0 || len(f.questions()) != 2 {
			t.Errorf("it took %v, %d questions: %+v", took, len(f.questions()), a)
		}
	})
}

// Whose answers are whose: what shares an entry of the cache, and what does not.
func TestSharing(t *testing.T) {
	tests := map[string]struct {
		first, second func(q *serving.Query)
		app           func(*serving.App)
		age           time.Duration // between them
		shared        bool
	}{
		"the same":                    {shared: true},
		"another user":                {second: func(q *serving.Query) { q.User = "b" }, shared: true},
		"another deadline":            {second: func(q *serving.Query) { q.Timeout = slo / 2 }, shared: true},
		"the same salt":               {first: salted("a"), second: salted("a"), shared: true},
		"another salt":                {first: salted("a"), second: salted("b")},
		"a salt and none":             {first: salted("a")},
		"none and a salt":             {second: salted("a")},
		"another input":               {second: func(q *serving.Query) { q.Input = doubles(7.001) }},
		"a longer input":              {second: func(q *serving.Query) { q.Input = doubles(7, 0) }},
		"a pinned version":            {second: func(q *serving.Query) { q.Version = "1" }, shared: true},
		"another pinned version":      {second: func(q *serving.Query) { q.Version = "0" }},
		"rounded, the same step":      {second: func(q *serving.Query) { q.Input = doubles(7.001) }, app: rounding(0.1), shared: true},
		"rounded, another step":       {second: func(q *serving.Query) { q.Input = doubles(7.1) }, app: rounding(0.1)},
		"just fresh enough":           {app: ttl(time.Second), age: time.Second, shared: true},
		"too old":                     {app: ttl(time.Second), age: time.Second + 1},
		"old, where age is no matter": {age: time.Hour, shared: true},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *rig) {
				f := t.replica("a", echoes(0), id("m", "0"), m1)
				t.serves(test.app, id("m", "0"), m1)
				ask := func(change func(*serving.Query)) serving.Prediction {
					q := newQuery(7)
					if change != nil {
						change(q)
					}
					a, _ := t.predict(q)
					return a
				}
				ask(test.first)
				time.Sleep(test.age)
				a := ask(test.second)
				asked := 2
				if test.shared {
					t.wantOutput(a, 7)
					asked = 1
				}
				if n := len(f.questions()); n != asked || a.Cached != test.shared {
					t.Errorf("%d questions, cached %v", n, a.Cached)
				}
			})
		})
	}
}

func salted(s string) func(*serving.Query)     { return func(q *serving.Query) { q.Salt = s } }
func rounding(step float64) func(*serving.App) { return func(a *serving.App) { a.Cache.Round = step } }
func ttl(d time.Duration) func(*serving.App) {
	return func(a *serving.App) { a.Cache.TTL = serving.Duration(d) }
}
func apps(names ...string) (list []*serving.App) {
	for _, name := range names {
		list = append(list, newApp(name, "m"))
	}
	return list
}

// Two apps of one model share its outputs, unless they round differently; the age
// that is good enough is each app's own.
func TestAppsShareTheOutputsOfAModel(t *testing.T) {
	bubble(t, func(t *rig) {
		f := t.replica("a", echoes(0), m1)
		list := apps("a", "b", "rounding", "hasty")
		list[2].Cache.Round = 1
		list[3].Cache.TTL = serving.Duration(time.Second)
		t.set(newCatalog(list, newModel(m1)))
		ask := func(app string) bool {
			q := newQuery(7)
			q.App = app
			a, _ := t.predict(q)
			t.wantOutput(a, 7)
			return a.Cached
		}
		if ask("a") || !ask("b") || ask("rounding") || !ask("hasty") || len(f.questions()) != 2 {
			t.Errorf("%d questions", len(f.questions()))
		}
		time.Sleep(time.Minute)
		if !ask("a") || ask("hasty") || !ask("hasty") || len(f.questions()) != 3 {
			t.Errorf("%d questions", len(f.questions()))
		}
	})
}

// A question that lands between a query's look into the cache and its joining is
// not asked a second time.
func TestTheSecondLook(t *testing.T) {
	bubble(t, func(t *rig) {
		f := t.replica("a", echoes(0), m1)
		t.serves(nil, m1)
		r := t.p.request(1)
		w := &r.queries[0]
		require.NoError(t, w.begin(t.p, newQuery(7), r.wake, 0))
		key := w.attempts[0].version.keyer.Key(w.Input, "")
		if w.cached(0, key) {
			t.Fatal("the first look finds something")
		}
		t.predict(newQuery(7))
		w.join(0, key)
		w.opened = 1
		require.NoError(t, r.await(t.ctx))
		var a serving.Prediction
		w.answer(1, &a)
		t.wantOutput(a, 7)
		if n := len(f.questions()); n != 1 || !a.Cached {
			t.Errorf("%d questions: %+v", n, a)
		}
	})
}

// TestEqualQuestionsAreAskedOnceUnderRaces is in real time: whatever the
// interleaving of landing and joining, a question that is cached is not asked.
func TestEqualQuestionsAreAskedOnceUnderRaces(t *testing.T) {
	r, stop := newRig(t, func() {})
	defer stop()
	f := r.replica("a", echoes(0), m1)
	r.serves(func(a *serving.App) { a.SLO = serving.Duration(10 * time.Second) }, m1)
	r.ready(m1, 1)
	const questions = 300
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			for i := range questions {
				a, err := one(t.Context(), r.p, newQuery(float64(i)))
				if err != nil || string(a.Output) != jsonOf(float64(i)) {
					t.Errorf("question %d: %+v, %v", i, a, err)
				}
			}
		})
	}
	all.Wait()
	if n := len(f.questions()); n != questions {
		t.Errorf("%d questions were asked, want %d", n, questions)
	}
}
