package records

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/topsail-serving/topsail/serving"
	"github.com/topsail-serving/topsail/stream"
	"github.com/topsail-serving/topsail/test/require"
)

// byApp are the results of a stream by the id of their record and the app.
func byApp(t *testing.T, broker *memory, name string) map[string]Response {
	t.Helper()
	all := map[string]Response{}
	for _, r := range broker.read(name) {
		response, err := ParseResponse(r.Value, stream.JSON)
		require.NoError(t, err)
		all[response.UUID+" "+response.App] = response
	}
	return all
}

func named(id, apps, input string) serving.StreamMessage {
	return serving.StreamMessage{Stream: "in", Value: []byte(`{"uuid": "` + id + `", "app": ` + apps + `, "input": ` + input + `}`)}
}

// Each app that predicts a record has a result of its own, whoever said that there are several; they are committed together.
func TestSeveralAppsPredictARecord(t *testing.T) {
	bubble(t, func(t *testing.T) {
		broker := newMemory("in")
		broker.write(
			named("named", `["numbers", "half", "numbers"]`, "[4]"),
			named("mapped", `"both"`, "[4]"),
			serving.StreamMessage{Stream: "in", Value: []byte(`{"uuid": "own", "input": [4]}`)},
		)
		s := newScorer(func(ctx context.Context, q *serving.Query) (serving.Prediction, error) {
			if q.App == "half" {
				time.Sleep(3 * time.Second)
				return serving.Prediction{Output: []byte("2")}, nil
			}
			return double(ctx, q)
		})
		s.apps["half"] = &serving.App{Name: "half", InputType: serving.Doubles, Models: []string{"m"}}
		j, _, _ := run(t, broker, s, func(c *Config) {
			c.App, c.Apps = "double, half", map[string]string{"numbers": "double", "both": "half,double"}
		})
		settled(2 * time.Second)
		if n := len(broker.read("out")); n != 0 {
			t.Errorf("%d results before the last app has answered", n)
		}
		settled(8 * time.Second)
		got := byApp(t, broker, "out")
		for _, id := range []string{"named", "mapped", "own"} {
			slow, fast := got[id+" half"], got[id+" double"]
			if string(slow.Output) != "2" || string(fast.Output) != "8" || slow.QueryID == fast.QueryID || slow.Took != 3*time.Second || fast.Model != "m" {
				t.Errorf("%s: %+v and %+v", id, slow, fast)
			}
		}
		if n := len(broker.read("out")); n != 6 {
			t.Errorf("%d results", n)
		}
		if got := j.Status().Tally; got != (Tally{Records: 3, Results: 6}) {
			t.Errorf("tally %+v", got)
		}
	})
}

// What one of several apps does not take is a dead letter for that app, and may be sent again to it.
func TestADeadLetterOfOneOfSeveralApps(t *testing.T) {
	bubble(t, func(t *testing.T) {
		broker := newMemory("in")
		broker.write(named("a", `["numbers", "words"]`, `"text"`), named("b", `["nothing", "words"]`, `"text"`))
		j, _, _ := run(t, broker, newScorer(double), func(c *Config) {
			c.App, c.Apps, c.AppPatience = "", map[string]string{"numbers": "double", "words": "length"}, -1
		})
		settled(time.Second)
		got, dead := byApp(t, broker, "out"), broker.read("dead")
		if len(got) != 2 || string(got["a length"].Output) != "4" || string(got["b length"].Output) != "4" || len(dead) != 2 {
			t.Fatalf("results %+v, dead letters %+v", got, dead)
		}
		// Records without a key leave as they are done.
		slices.SortFunc(dead, func(a, b serving.StreamRecord) int { return strings.Compare(a.Header(HeaderApp), b.Header(HeaderApp)) })
		for i, want := range []struct{ app, kind string }{{"double", "wrong_input"}, {"nothing", "unknown_app"}} {
			if app, kind := dead[i].Header(HeaderApp), dead[i].Header(stream.HeaderKind); app != want.app || kind != want.kind {
				t.Errorf("a dead letter of %s for app %s", kind, app)
			}
		}
		if got := j.Status().Tally; got != (Tally{Records: 2, Results: 2, DeadLetters: 2}) {
			t.Errorf("tally %+v", got)
		}
		again := serving.StreamMessage{Stream: "in", Value: []byte(strings.Replace(string(dead[0].Value), `"text"`, "[3]", 1)), Headers: dead[0].Headers}
		broker.write(again, again)
		settled(time.Second)
		if got := byApp(t, broker, "out"); len(got) != 3 || string(got["a double"].Output) != "6" {
			t.Errorf("results %+v", got)
		}
		if dead := broker.read("dead"); len(dead) != 3 || dead[2].Header(stream.HeaderKind) != "repeated_id" {
			t.Errorf("dead letters %+v", dead)
		}
	})
}

// A record waits for an app that is not there yet, and holds up no other; what does not come in time is no longer waited for.
func TestAppsThatMayCome(t *testing.T) {
	bubble(t, func(t *testing.T) {
		broker := newMemory("in")
		broker.write(named("soon", `"soon"`, "[1]"), named("never", `"never"`, "[1]"), named("there", `"numbers"`, "[1]"))
		s := newScorer(double)
		j, _, _ := run(t, broker, s, func(c *Config) {
			c.App, c.Apps, c.Batch = "", map[string]string{"numbers": "double", "soon": "later"}, 4
		})
		settled(10 * time.Second)
		if got := byApp(t, broker, "out"); len(got) != 1 || string(got["there double"].Output) != "2" || len(broker.read("dead")) != 0 {
			t.Errorf("results %+v, dead letters %+v", got, broker.read("dead"))
		}
		if err := j.Ready(); err == nil || !strings.Contains(err.Error(), "cannot find the apps that records name") {
			t.Errorf("ready: %v", err)
		}
		s.set(map[string]*serving.App{"double": s.apps["double"], "later": {Name: "later", InputType: serving.Doubles, Models: []string{"m"}}})
		settled(2 * time.Second)
		if got := byApp(t, broker, "out"); len(got) != 2 || string(got["soon later"].Output) != "2" {
			t.Errorf("results %+v", got)
		}
		settled(20 * time.Second)
		if dead := broker.read("dead"); len(dead) != 1 || dead[0].Header(stream.HeaderKind) != "unknown_app" || !strings.Contains(dead[0].Header(stream.HeaderReason), `names the app "never"`) {
			t.Errorf("dead letters %+v", dead)
		}
		if err := j.Ready(); err != nil {
			t.Errorf("ready: %v", err)
		}
		for range 10 { // more than there is room for in flight
			broker.write(named("never "+time.Now().String(), `"never"`, "[1]"))
			settled(100 * time.Millisecond)
		}
		if n := len(broker.read("dead")); n != 11 {
			t.Errorf("%d dead letters: what has been missing for long is waited for", n)
		}
	})
}

// A job that is to end does not wait for apps.
func TestEndingWhileAnAppIsMissing(t *testing.T) {
	bubble(t, func(t *testing.T) {
		broker := newMemory("in")
		broker.write(named("a", `"later"`, "[1]"))
		_, _, stop := run(t, broker, newScorer(double), nil)
		settled(time.Second)
		began := time.Now()
		if stop(); time.Since(began) > time.Second || len(broker.read("dead")) != 0 {
			t.Errorf("it took %v, and there are %d dead letters", time.Since(began), len(broker.read("dead")))
		}
	})
}

// Records wait for a model of an app that has none as long as for an app, and then have the default.
func TestAnAppWithoutModels(t *testing.T) {
	bubble(t, func(t *testing.T) {
		broker := newMemory("in")
		broker.write(jsonRecord("a", 1))
		s := newScorer(func(context.Context, *serving.Query) (serving.Prediction, error) {
			return missing(serving.NoReplica), nil
		})
		s.set(map[string]*serving.App{"double": {Name: "double", InputType: serving.Doubles}})
		j, _, _ := run(t, broker, s, nil)
		settled(20 * time.Second)
		if err := j.Ready(); err == nil || !strings.Contains(err.Error(), "cannot predict with app double") || len(broker.read("out")) != 0 {
			t.Errorf("ready: %v, %d results", err, len(broker.read("out")))
		}
		settled(15 * time.Second)
		broker.write(jsonRecord("b", 1), jsonRecord("c", 1))
		settled(time.Second)
		got := results(t, broker, "out")
		if len(got) != 3 || !got["a"].Default || !got["c"].Default || got["a"].Took < 30*time.Second || got["c"].Took > time.Second {
			t.Errorf("results %+v", got)
		}
	})
}

// What is remembered of what is missing is bounded, and ends.
func TestAbsences(t *testing.T) {
	a, now := newAbsences(time.Second), time.Unix(1000, 0)
	if !a.wait("x", now) || !a.wait("x", now.Add(999*time.Millisecond)) || a.wait("x", now.Add(time.Second)) {
		t.Error("it is not waited for, or for too long")
	}
	if a.wait("x", now.Add(time.Minute)) || !a.wait("x", now.Add(3*time.Minute)) {
		t.Error("it is forgotten too soon, or not at all")
	}
	for i := range 5 * mostAbsences {
		a.wait(string(rune('a'+i%26))+time.Duration(i).String(), now)
	}
	if len(a.seen) > mostAbsences {
		t.Errorf("%d are remembered", len(a.seen))
	}
	if newAbsences(0).wait("x", now) {
		t.Error("it waits without patience")
	}
}

func TestNamesOfApps(t *testing.T) {
	for text, want := range map[string][]string{
		`"a"`: {"a"}, `7`: {"7"}, `["a", 7, null, ""]`: {"a", "7"}, `null`: nil, `[]`: nil, `{}`: {"no"}, `[["a"]]`: {"no"}, `1.5`: {"no"},
		`["` + strings.Repeat("a", maxName+1) + `"]`: {"no"}, `["x"` + strings.Repeat(`,"x"`, serving.MaxRecordApps) + `]`: {"no"},
	} {
		r, err := ParseRequest([]byte(`{"uuid": "u", "input": 1, "app": `+text+`}`), stream.JSON)
		if refused := slices.Equal(want, []string{"no"}); refused != (err != nil) || !refused && !slices.Equal(r.Apps, want) {
			t.Errorf("%.40s: %q, %v", text, r.Apps, err)
		}
	}
}
