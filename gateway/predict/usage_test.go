package predict

import (
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/topsail-serving/topsail/internal/obs"
	"github.com/topsail-serving/topsail/rpc"
	"github.com/topsail-serving/topsail/serving"
)

// used is what was counted since it was last asked for, by what it is of.
func (r *rig) used() map[string]serving.Usage {
	r.Helper()
	r.settle() // an answer is there before it is counted
	all := map[string]serving.Usage{}
	_, counted := r.p.TakeUsage()
	for _, u := range counted {
		name := u.Key.String()
		if _, twice := all[name]; twice || u.Empty() || !u.Since.IsZero() {
			r.Errorf("%s: counted %+v", name, u)
		}
		all[name] = u
	}
	return all
}

// wantUsed compares all that was counted, but for failures.
func (r *rig) wantUsed(want ...serving.Usage) map[string]serving.Usage {
	r.Helper()
	got := r.used()
	for _, u := range want {
		have := got[u.Key.String()]
		have.Last = nil
		if !reflect.DeepEqual(have, u) {
			r.Errorf("%v: got %+v, want %+v", u.Key, have, u)
		}
	}
	if len(got) != len(want) {
		r.Errorf("counted %+v", got)
	}
	return got
}

func wholeApp() serving.UsageKey { return serving.UsageKey{App: "app"} }

func stageOf(name string) serving.UsageKey { return serving.UsageKey{App: "app", Stage: name} }

func wholeVersion(id serving.ModelID) serving.UsageKey { return serving.UsageKey{ModelID: id} }

// spent is answers that took so long each.
func spent(of serving.UsageKey, times ...time.Duration) serving.Usage {
	u := serving.Usage{Key: of, Answers: uint64(len(times)), Least: slices.Min(times), Most: slices.Max(times)}
	for _, t := range times {
		u.Micros += uint64(t.Microseconds())
	}
	return u
}

// A model is counted for what it said, and an app for what it answered.
func TestUsageOfAModelAndItsApp(t *testing.T) {
	bubble(t, func(t *rig) {
		t.serves(nil, m1)
		t.replica("r", func(q arrival) (rpc.Answer, time.Duration) { return number(q.x), time.Duration(q.x) * time.Millisecond }, m1)
		t.wantUsed()
		t.predict(newQuery(3))
		t.predict(newQuery(5))
		t.predict(newQuery(3)) // from the cache
		app := spent(wholeApp(), 3*time.Millisecond, 5*time.Millisecond, 1)
		app.Cached = 1
		version := spent(wholeVersion(m1), 3*time.Millisecond, 5*time.Millisecond)
		version.Cached = 1
		t.wantUsed(app, version)
		t.wantUsed()

		t.predict(newQuery(4)) // what was the shortest is forgotten
		t.wantUsed(spent(wholeApp(), 4*time.Millisecond), spent(wholeVersion(m1), 4*time.Millisecond))
		if s := t.p.metrics.Traffic()[0].Times; s.Count != 4 || s.Least != 1 || s.Most != 5*time.Millisecond {
			t.Errorf("Clipper's page forgets: %+v", s)
		}
	})
}

// Equal questions at once are one question to the model.
func TestUsageOfEqualQuestions(t *testing.T) {
	bubble(t, func(t *rig) {
		t.serves(nil, m1)
		t.replica("r", echoes(5*time.Millisecond), m1)
		for range 2 {
			t.all.Go(func() { t.predict(newQuery(7)) })
		}
		t.settle()
		time.Sleep(5 * time.Millisecond)
		t.settle()
		app, version := spent(wholeApp(), 5*time.Millisecond, 5*time.Millisecond), spent(wholeVersion(m1), 5*time.Millisecond)
		app.Cached, version.Cached = 1, 1
		t.wantUsed(app, version)
	})
}

// However many replicas are asked, a question counts once, from the first asking on.
func TestUsageOfHedgesAndRetries(t *testing.T) {
	half := (slo - margin) / 2
	for name, c := range map[string]struct {
		behave behaviour
		took   time.Duration
	}{
		"the hedge wins":              {inTurn(silent, echoes(time.Millisecond)), half + time.Millisecond},
		"the first wins":              {inTurn(echoes(60*time.Millisecond), silent), 60 * time.Millisecond},
		"both answer":                 {inTurn(echoes(60*time.Millisecond), echoes(20*time.Millisecond)), 60 * time.Millisecond},
		"the first dies":              {inTurn(fails(rpc.StatusContainer, "killed"), echoes(time.Millisecond)), time.Millisecond},
		"the first refuses":           {inTurn(fails(rpc.StatusFull, ""), echoes(time.Millisecond)), time.Millisecond},
		"the first is about to leave": {inTurn(fails(rpc.StatusDraining, ""), echoes(time.Millisecond)), time.Millisecond},
	} {
		bubble(t, func(t *rig) {
			t.replica("a", c.behave, m1)
			t.replica("b", c.behave, m1)
			t.serves(nil, m1)
			got, _ := t.predict(newQuery(7))
			t.wantOutput(got, 7)
			time.Sleep(10 * slo) // whatever else comes has come
			t.Helper()
			t.wantUsed(spent(wholeApp(), c.took), spent(wholeVersion(m1), c.took))
			if t.Failed() {
				t.Fatal(name)
			}
		})
	}
}

// What the model or its container did wrong is an error; what did not come to it is none.
func TestUsageOfFailures(t *testing.T) {
	for name, c := range map[string]struct {
		behave       behaviour
		failed       bool
		last, reason string // of the version; of the default
	}{
		"a model error": {fails(rpc.StatusModelError, "ValueError: no"), true, "model_error: Model error: ValueError: no", "model_error: Model error: ValueError: no"},
		"a dead one":    {fails(rpc.StatusContainer, "killed"), true, "container_error: Container error: killed", "container_error: Container error: killed"},
		"no room":       {fails(rpc.StatusFull, ""), false, "", "refused_full: Refused: refused_full"},
		"no time":       {fails(rpc.StatusLate, ""), false, "", "refused_late: Refused: refused_late"},
		"taken back":    {fails(rpc.StatusCancelled, ""), false, "", "missed_slo: Failed to retrieve a prediction response within the specified latency SLO"},
	} {
		bubble(t, func(t *rig) {
			t.serves(nil, m1)
			t.replica("r", c.behave, m1)
			at := time.Now()
			got, _ := t.predict(newQuery(7))
			app, version := spent(wholeApp(), 1), serving.Usage{Key: wholeVersion(m1), Missed: 1}
			if app.Failed = 1; c.failed {
				version.Failed, version.Missed = 1, 0
			}
			all := t.wantUsed(app, version)
			if t.Failed() {
				t.Fatalf("%s: %+v", name, got)
			}
			for key, want := range map[serving.UsageKey]string{wholeVersion(m1): c.last, wholeApp(): c.reason} {
				last := all[key.String()].Last
				switch {
				case last == nil && want == "":
				case last == nil || !strings.HasPrefix(last.Cause+": "+last.Message, want) || !last.At.Equal(at.Truncate(time.Millisecond)):
					t.Errorf("%s: the last of %v is %+v, want %q at %v", name, key, last, want, at)
				}
			}
			t.wantUsed()
		})
	}
}

// A model that is too late has answered all the same; its app has not.
func TestUsageOfWhatIsLate(t *testing.T) {
	bubble(t, func(t *rig) {
		t.serves(nil, m1)
		t.replica("r", echoes(2*slo), m1)
		got, _ := t.predict(newQuery(7))
		t.wantDefault(got, serving.MissedSLO)
		app := spent(wholeApp(), slo-margin)
		app.Failed = 1
		if last := t.wantUsed(app)["app/app"].Last; last == nil || last.Cause != "missed_slo" {
			t.Errorf("the default is because of %+v", last)
		}
		time.Sleep(2 * slo)
		t.wantUsed(spent(wholeVersion(m1), 2*slo))
	})
}

// Without a replica there is a default, and nothing that a model did.
func TestUsageWithoutAReplica(t *testing.T) {
	bubble(t, func(t *rig) {
		t.serves(nil, m1)
		t.predict(newQuery(7))
		app := spent(wholeApp(), slo-margin)
		app.Failed = 1
		t.wantUsed(app, serving.Usage{Key: wholeVersion(m1), Missed: 1})
	})
}

// A default after which the query is retried is no answer.
func TestUsageOfWhatIsAskedAgain(t *testing.T) {
	bubble(t, func(t *rig) {
		t.serves(nil, m1)
		got, _ := t.predict(again(7))
		t.wantDefault(got, serving.NoReplica)
		t.wantUsed(serving.Usage{Key: wholeVersion(m1), Missed: 1})
		t.replica("r", echoes(time.Millisecond), m1)
		t.predict(again(7))
		t.wantUsed(spent(wholeApp(), time.Millisecond), spent(wholeVersion(m1), time.Millisecond))

		t.staged(nil, stage("first", "a"))
		t.predict(again(8))
		t.wantUsed(serving.Usage{Key: wholeVersion(a1), Missed: 1})
	})
}

// Each of several models is counted by itself, shadows too; who asks to learn asks
// models, and no app.
func TestUsageOfAnEnsemble(t *testing.T) {
	bubble(t, func(t *rig) {
		t.replica("r", by(map[string]behaviour{"a": says(1, time.Millisecond), "b": says(3, 2*time.Millisecond)}), a1, b1)
		t.links(func(a *serving.App) { a.Policy = serving.PolicySpec{Kind: serving.PolicyMean} }, a1, b1)
		t.predict(newQuery(7))
		t.wantUsed(spent(wholeApp(), 2*time.Millisecond), spent(wholeVersion(a1), time.Millisecond), spent(wholeVersion(b1), 2*time.Millisecond))
		if _, err := t.p.DryRun(t.ctx, newQuery(8), time.Second); err != nil {
			t.Fatal(err)
		}
		t.wantUsed(spent(wholeVersion(a1), time.Millisecond), spent(wholeVersion(b1), 2*time.Millisecond))

		t.links(func(a *serving.App) { a.Policy = serving.PolicySpec{Kind: serving.PolicyShadow, Model: "a"} }, a1, b1)
		t.predict(newQuery(9))
		time.Sleep(slo)
		t.wantUsed(spent(wholeApp(), time.Millisecond), spent(wholeVersion(a1), time.Millisecond), spent(wholeVersion(b1), 2*time.Millisecond))
	})
}

// Each stage of an app is counted by what its model came to in it.
func TestUsageOfStages(t *testing.T) {
	bubble(t, func(t *rig) {
		t.replica("ra", plus(10, time.Millisecond), a1)
		b := t.replica("rb", plus(100, 2*time.Millisecond), b1)
		t.staged(nil, stage("first", "a"), stage("second", "b"))
		t.predict(newQuery(7))
		t.wantUsed(spent(wholeApp(), 3*time.Millisecond), spent(wholeVersion(a1), time.Millisecond), spent(wholeVersion(b1), 2*time.Millisecond),
			spent(stageOf("first"), time.Millisecond), spent(stageOf("second"), 2*time.Millisecond))

		t.predict(newQuery(7))
		app := spent(wholeApp(), 1)
		app.Cached = 1
		cached := func(of serving.UsageKey) serving.Usage { return serving.Usage{Key: of, Cached: 1} }
		t.wantUsed(app, cached(wholeVersion(a1)), cached(wholeVersion(b1)), cached(stageOf("first")), cached(stageOf("second")))

		t.stop(b)
		t.replica("rb", fails(rpc.StatusModelError, "no"), b1)
		t.predict(newQuery(8))
		app, first, second, v := spent(wholeApp(), time.Millisecond), spent(stageOf("first"), time.Millisecond), serving.Usage{Key: stageOf("second"), Failed: 1}, serving.Usage{Key: wholeVersion(b1), Failed: 1}
		app.Failed = 1
		all := t.wantUsed(app, spent(wholeVersion(a1), time.Millisecond), v, first, second)
		if last := all["app/app/second"].Last; last == nil || last.Message != "Model error: stage second: no" {
			t.Errorf("the last failure of the stage is %+v", last)
		}
		if last := all["app/app"].Last; last == nil || last.Message != "Model error: stage second: no" {
			t.Errorf("the reason of the default is %+v", last)
		}

		t.predict(newQuery(9))
		t.staged(nil, stage("first", "a"), stage("third", "b")) // stages that stay go on
		if all := t.used(); all["app/app/first"].Answers != 1 || all["app/app/second"].Failed != 0 {
			t.Errorf("after a change: %+v", all)
		}
	})
}

// What is not registered any more is not counted, and what is anew begins anew.
func TestUsageOfWhatIsGone(t *testing.T) {
	bubble(t, func(t *rig) {
		t.serves(nil, m1)
		t.replica("r", echoes(time.Millisecond), m1)
		cat := newCatalog([]*serving.App{newApp("app", "m")}, newModel(m1))
		cat.Revision = 7
		t.set(cat)
		t.predict(newQuery(7))
		gone := newCatalog(nil)
		gone.Revision = 8
		t.set(gone)
		if revision, counted := t.p.TakeUsage(); revision != 8 || len(counted) != 0 {
			t.Errorf("counted %+v at revision %d", counted, revision)
		}
		t.set(cat)
		t.predict(newQuery(8))
		t.wantUsed(spent(wholeApp(), time.Millisecond), spent(wholeVersion(m1), time.Millisecond))
		if revision, _ := t.p.TakeUsage(); revision != 7 {
			t.Errorf("revision %d", revision)
		}
	})
}

// TestUsageOfLongTimes adds up parts of microseconds, and is right when sums wrap.
func TestUsageOfLongTimes(t *testing.T) {
	m := NewMetrics(obs.NewRegistry())
	a := m.app("app", slo)
	total := uint64(0)
	for range 3000 {
		a.times.add(1500)
		total += a.take(wholeApp()).Micros
	}
	if total != 4500 {
		t.Errorf("3000 times 1.5 µs are %d µs", total)
	}
	a.times.sum.Store(1<<63 - 1000)
	a.take(wholeApp())
	a.times.sum.Add(1_000_000)
	if u := a.take(wholeApp()); u.Micros < 999 || u.Micros > 1001 {
		t.Errorf("a millisecond is %d µs", u.Micros)
	}
}

// The stages of a model's pipeline are counted by the answer that counts, whoever else
// was asked.
func TestUsageOfTheStagesOfAModel(t *testing.T) {
	staged := func(answer rpc.Answer, ended bool, each time.Duration) behaviour {
		answer.Stages = rpc.AppendStageTime(nil, rpc.StageTime{Name: []byte("embed"), Took: each})
		answer.Stages = rpc.AppendStageTime(answer.Stages, rpc.StageTime{Name: []byte("rank"), Took: 2 * each, Ended: ended})
		return func(arrival) (rpc.Answer, time.Duration) { return answer, 3 * each }
	}
	of := func(stage string) serving.UsageKey {
		return serving.UsageKey{ModelID: m1, Stage: stage}
	}
	bubble(t, func(t *rig) {
		const each = 10 * time.Millisecond
		behave := inTurn(staged(number(7), false, 4*each), staged(number(7), false, each)) // the second is a hedge, and wins
		t.replica("a", behave, m1)
		t.replica("b", behave, m1)
		t.serves(nil, m1)
		t.predict(newQuery(7))
		time.Sleep(2 * slo)
		wins := (slo-margin)/2 + 3*each
		t.wantUsed(spent(wholeApp(), wins), spent(wholeVersion(m1), wins), spent(of("embed"), each), spent(of("rank"), 2*each))
	})
	bubble(t, func(t *rig) {
		no := rpc.Answer{Status: rpc.StatusModelError, Message: []byte("stage rank: no")}
		behave := inTurn(staged(rpc.Answer{Status: rpc.StatusContainer, Message: []byte("stage rank: killed")}, true, time.Millisecond), staged(no, true, 2*time.Millisecond))
		t.replica("a", behave, m1)
		t.replica("b", behave, m1)
		t.serves(nil, m1)
		t.predict(newQuery(7)) // a second replica is asked, and its answer counts
		app, rank, v := spent(wholeApp(), 9*time.Millisecond), serving.Usage{Key: of("rank"), Failed: 1}, serving.Usage{Key: wholeVersion(m1), Failed: 1}
		app.Failed = 1
		all := t.wantUsed(app, v, spent(of("embed"), 2*time.Millisecond), rank)
		if last := all[rank.Key.String()].Last; last == nil || last.Message != "Model error: stage rank: no" {
			t.Errorf("the last failure is %+v", last)
		}
	})
}
