package predict

import (
	"context"
	"math"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/topsail-serving/topsail/rpc"
	"github.com/topsail-serving/topsail/serving"
)

// timed asks, and says where the time went, in milliseconds from the query's arrival.
func (r *rig) timed(qs ...serving.Query) (serving.Timing, []serving.Prediction) {
	r.Helper()
	t := serving.Timing{Received: qs[0].Received}
	qs[0].Timing = &t
	ps, err := r.p.Predict(context.Background(), qs...)
	if err != nil || len(ps) != len(qs) {
		r.Fatalf("predict: %d answers to %d queries, %v", len(ps), len(qs), err)
	}
	return t, ps
}

// passed compares when the points were passed; -1 stands for one that was not.
func (r *rig) passed(t serving.Timing, selected, looked, sent, heard, combined time.Duration) {
	r.Helper()
	for _, point := range []struct {
		name string
		at   time.Time
		want time.Duration
	}{{"selected", t.Selected, selected}, {"looked", t.Looked, looked}, {"sent", t.Sent, sent}, {"heard", t.Heard, heard}, {"combined", t.Combined, combined}} {
		got := time.Duration(-1)
		if !point.at.IsZero() {
			got = point.at.Sub(t.Received)
		}
		if got != point.want {
			r.Errorf("%s after %v, want %v", point.name, got, point.want)
		}
	}
}

func TestWhereTheTimeOfOneModelWent(t *testing.T) {
	const ms = time.Millisecond
	bubble(t, func(t *rig) {
		t.serves(nil, m1)
		go func() { // comes late: the query is held
			time.Sleep(10 * ms)
			t.replica("r", echoes(20*ms), m1)
		}()
		got, _ := t.timed(*newQuery(7))
		t.passed(got, 0, 0, 10*ms, 30*ms, 30*ms)
		if got.Model != m1 || got.Replica != "r" || got.Cache != "missed" || got.Service != 0 {
			t.Errorf("%+v", got)
		}
		got, ps := t.timed(*newQuery(7))
		t.passed(got, 0, 0, -1, -1, 0)
		if got.Model != m1 || got.Replica != "" || got.Cache != "hit" || !ps[0].Cached {
			t.Errorf("from the cache: %+v", got)
		}
	})
}

func TestWhereTheTimeOfAJoinedQueryWent(t *testing.T) {
	const ms = time.Millisecond
	bubble(t, func(t *rig) {
		t.serves(nil, m1)
		t.replica("r", echoes(20*ms), m1)
		done := make(chan struct{})
		go func() { defer close(done); t.predict(newQuery(7)) }()
		time.Sleep(5 * ms)
		got, _ := t.timed(*newQuery(7))
		<-done
		t.passed(got, 0, 0, -1, 15*ms, 15*ms)
		if got.Cache != "joined" || got.Replica != "" {
			t.Errorf("%+v", got)
		}
	})
}

func TestWhereTheTimeOfNoAnswerWent(t *testing.T) {
	bubble(t, func(t *rig) {
		t.serves(func(a *serving.App) { a.Cache.Off = true }, m1)
		got, ps := t.timed(*newQuery(7))
		t.passed(got, 0, 0, -1, slo-margin, slo-margin)
		t.wantDefault(ps[0], serving.NoReplica)
		f := t.replica("r", silent, m1)
		got, ps = t.timed(*newQuery(7))
		t.passed(got, 0, 0, 0, slo-margin, slo-margin)
		t.wantDefault(ps[0], serving.MissedSLO)
		if got.Replica != "r" || got.Cache != "off" {
			t.Errorf("%+v", got)
		}
		t.stop(f)
		t.replica("r2", fails(rpc.StatusModelError, "no"), m1)
		got, ps = t.timed(*newQuery(7))
		t.passed(got, 0, 0, 0, 0, 0)
		t.wantDefault(ps[0], serving.ModelError)
		if got.Replica != "r2" {
			t.Errorf("%+v", got)
		}
		t.set(newCatalog([]*serving.App{newApp("app")})) // without a model
		got, _ = t.timed(*newQuery(7))
		t.passed(got, 0, -1, -1, -1, 0)
	})
}

// A replica that is silent is hedged: the stage of the model is the second one's.
func TestWhereTheTimeOfASecondReplicaWent(t *testing.T) {
	const ms = time.Millisecond
	bubble(t, func(t *rig) {
		t.serves(nil, m1)
		var asked atomic.Int64
		once := func(q arrival) (rpc.Answer, time.Duration) {
			if asked.Add(1) == 1 {
				return rpc.Answer{}, never
			}
			return number(q.x), 3 * ms
		}
		t.replica("a", once, m1)
		t.replica("b", once, m1)
		got, ps := t.timed(*newQuery(7))
		t.wantOutput(ps[0], 7)
		half := (slo - margin) / 2
		t.passed(got, 0, 0, half, half+3*ms, half+3*ms)
	})
}

// Of several models the last one that the answer was made of is what took so long, and
// in a batch its first query.
func TestWhereTheTimeOfSeveralModelsWent(t *testing.T) {
	const ms = time.Millisecond
	bubble(t, func(t *rig) {
		t.replica("r", by(map[string]behaviour{"a": says(1, 5*ms), "b": says(2, 20*ms), "c": silent}), a1, b1, c1)
		t.decides(&scripted{}, a1, b1, c1)
		got, _ := t.timed(*newQuery(7), *newQuery(8))
		t.passed(got, 0, 0, 0, 20*ms, slo-margin)
		if got.Model != b1 || got.Replica != "r" {
			t.Errorf("%+v", got)
		}
	})
}

// Queries that a model decides on are asked each by itself, and the first is timed.
func TestWhereTheTimeOfADecidedQueryWent(t *testing.T) {
	const ms = time.Millisecond
	bubble(t, func(t *rig) {
		t.replica("r", by(map[string]behaviour{
			"a": echoes(0), "b": says(2, ms),
			"m": func(arrival) (rpc.Answer, time.Duration) {
				return text(map[string]any{"ask": []string{"b"}, "model": "b"}), 2 * ms
			},
		}), a1, b1, m1)
		t.decidesBy(0)
		got, _ := t.timed(*newQuery(7), *newQuery(8))
		t.passed(got, 2*ms, 2*ms, 2*ms, 3*ms, 5*ms)
		if got.Model != b1 {
			t.Errorf("%+v", got)
		}
	})
}

func TestTheServiceTimeIsPassedOn(t *testing.T) {
	bubble(t, func(t *rig) {
		t.serves(nil, m1)
		f := t.replica("r", echoes(20*time.Millisecond), m1)
		f.service = 4 * time.Millisecond
		if got, _ := t.timed(*newQuery(7)); got.Service != f.service {
			t.Errorf("the model took %v", got.Service)
		}
	})
}

// What Clipper's page says is what the other one does.
func TestTrafficIsThatOfTheMetrics(t *testing.T) {
	bubble(t, func(t *rig) {
		t.serves(nil, m1)
		t.replica("r", echoes(3*time.Millisecond), m1)
		t.predict(newQuery(1))
		t.predict(newQuery(1))
		t.predict(newQuery(2))
		all := t.p.metrics.Traffic()
		if len(all) != 1 || all[0].App != "app" || !all[0].Since.Equal(t.began) {
			t.Fatalf("%+v", all)
		}
		one := all[0]
		if one.Total() != 3 || one.Answers[serving.OK] != 3 || one.Hits != 1 || one.Joined != 0 || one.Missed != 2 {
			t.Errorf("%+v", one)
		}
		if one.Times.Count != 3 || one.Times.Sum != 6*time.Millisecond || one.Times.Least != time.Nanosecond || one.Times.Most != 3*time.Millisecond {
			t.Errorf("%+v", one.Times)
		}
		for name, want := range map[string]float64{
			`topsail_gateway_answers_total{app="app",cause="ok"}`:              3,
			`topsail_gateway_cache_total{app="app",result="hit"}`:              1,
			`topsail_gateway_cache_total{app="app",result="missed"}`:           2,
			`topsail_gateway_query_seconds_bucket{app="app",le="0.0001"}`:      1,
			`topsail_gateway_query_seconds_bucket{app="app",le="0.00287"}`:     1,
			`topsail_gateway_query_seconds_bucket{app="app",le="0.00301"}`:     3,
			`topsail_gateway_query_seconds_bucket{app="app",le="+Inf"}`:        3,
			`topsail_gateway_query_seconds_sum{app="app"}`:                     0.006,
			`topsail_gateway_query_seconds_count{app="app"}`:                   3,
			`topsail_gateway_answers_total{app="app",cause="container_error"}`: 0,
		} {
			if got := t.metric(name); got != want {
				t.Errorf("%s is %v, want %v", name, got, want)
			}
		}
		t.set(newCatalog([]*serving.App{newApp("app", "m")}, newModel(m1)))
		if n := t.p.metrics.Traffic()[0].Total(); n != 3 {
			t.Errorf("%d answers are left after a change of the catalog", n)
		}
		t.set(newCatalog(nil))
		if all := t.p.metrics.Traffic(); len(all) != 0 || t.metric(`topsail_gateway_query_seconds_count{app="app"}`) != -1 {
			t.Errorf("an app that is gone stays: %+v", all)
		}
	})
}

func TestTimesAreCounted(t *testing.T) {
	const ms, us = time.Millisecond, time.Microsecond
	var all times
	if s := all.now(); s.Count != 0 || s.Sum != 0 || s.Least != 0 || s.Most != 0 || len(s.Buckets) != 0 {
		t.Errorf("before any: %+v", s)
	}
	for _, took := range []time.Duration{ms, ms + 1, time.Hour, -time.Second, 100 * us} {
		all.add(took)
	}
	s := all.now()
	if s.Count != 5 || s.Sum != time.Hour+2100*us+1 || s.Least != time.Nanosecond || s.Most != time.Hour {
		t.Errorf("%+v", s)
	}
	want := []Bucket{{0, 100 * us, 2}, {953 * us, ms, 1}, {ms, 1050 * us, 1}, {1000 * time.Second, math.MaxInt64, 1}}
	if !slices.Equal(s.Buckets, want) {
		t.Errorf("buckets %v, want %v", s.Buckets, want)
	}
}
