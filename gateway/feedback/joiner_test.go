package feedback

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/topsail-serving/topsail/serving"
	"github.com/topsail-serving/topsail/test/require"
)

// twoAgree answers 7 by a and c, and 8 by b.
func twoAgree(model string, _ float64) (float64, time.Duration) {
	if model == "b" {
		return 8, 0
	}
	return 7, 0
}

// refused says that the feedback is refused, with these words, and nothing is learned.
func (r *rig) refused(f serving.Feedback, words string) {
	r.Helper()
	before := r.steps()
	_, err := r.learn(f)
	if refusal, ok := errors.AsType[*serving.QueryError](err); !ok || !strings.Contains(refusal.Cause, words) {
		r.Errorf("%v, want a refusal that says %q", err, words)
	}
	if now := r.steps(); now != before {
		r.Errorf("%v pieces were learned", now-before)
	}
}

func TestFeedbackByQueryID(t *testing.T) {
	bubble(t, nil, func(t *rig) {
		t.behaves(twoAgree)
		p := t.predict(1)
		calls := t.calls()
		l := t.must(serving.Feedback{QueryID: p.QueryID, Label: says(t, "8")})
		if l.QueryID != p.QueryID || l.Joined != serving.FromRecord || l.Duplicate || l.Loss != 1 {
			t.Errorf("learned %+v", l)
		}
		if want := []serving.StateScope{{User: "ann"}, {}}; !slices.Equal(l.Trained, want) {
			t.Errorf("trained %+v, want the user's state and the app's", l.Trained)
		}
		for model, want := range map[string]float64{"a": 1, "b": 0, "c": 1} {
			if loss, judged := outcome(&l, model); loss != want || !judged {
				t.Errorf("model %s has loss %v, judged %v", model, loss, judged)
			}
		}
		if t.calls() != calls || t.steps() != 1 {
			t.Errorf("%d models were called again, %v pieces learned", t.calls()-calls, t.steps())
		}
		for range 2 { // it is harmless to send it again
			if l := t.must(serving.Feedback{QueryID: p.QueryID, Label: says(t, "7")}); !l.Duplicate || l.Trained != nil || l.Loss != 0 {
				t.Errorf("again: %+v", l)
			}
		}
		if t.steps() != 1 {
			t.Errorf("%v pieces learned", t.steps())
		}
		for result, want := range map[string]float64{trained: 1, duplicate: 2} {
			if n := t.metric(`topsail_feedback_total{app="app",result="` + result + `"}`); n != want {
				t.Errorf("%v pieces are %s", n, result)
			}
		}
		if n := t.metric(`topsail_feedback_model_loss_total{app="app",model="a",version="1"}`); n != 1 {
			t.Errorf("model a lost %v", n)
		}
	})
}

// What a version said before it was redefined says nothing of it: it is called again.
func TestARecordOfAnotherDefinition(t *testing.T) {
	bubble(t, nil, func(t *rig) {
		t.behaves(func(model string, _ float64) (float64, time.Duration) {
			if model == "a, redefined" {
				return 70, 0
			}
			return 7, 0
		})
		p := t.predict(1)
		t.defines("b", nil)
		l := t.must(serving.Feedback{QueryID: p.QueryID, Label: says(t, "7")})
		for model, want := range map[string]float64{"a": 1, "b": 0, "c": 0} {
			if loss, judged := outcome(&l, model); loss != want || !judged {
				t.Errorf("model %s has loss %v, judged %v", model, loss, judged)
			}
		}
		if l.Joined != serving.FromRecord || l.Loss != 0 {
			t.Errorf("learned %+v", l)
		}
	})
}

// A version that is redefined while another one is called again learns nothing of what it
// said before.
func TestAVersionIsRedefinedWhileFeedbackIsJoined(t *testing.T) {
	bubble(t, nil, func(t *rig) {
		t.behaves(func(model string, _ float64) (float64, time.Duration) {
			if model == "b" {
				return 7, 300 * time.Millisecond // and so it is retried
			}
			return 7, 0
		})
		p := t.predict(1)
		time.AfterFunc(100*time.Millisecond, func() { t.defines("b", nil) })
		t.must(serving.Feedback{QueryID: p.QueryID, Label: says(t, "7")})
		s, _, err := t.states.Explain(t.Context(), t.p.Learning("app"), "", "")
		require.NoError(t, err)
		for i, want := range []float64{0, 1, 1} {
			if m := &s.Models[i]; m.Asked != want {
				t.Errorf("%v was judged %v times, want %v", m.Definition(), m.Asked, want)
			}
		}
	})
}

// A duplicate is known by its record, also when the states have learned much since.
func TestAnOldDuplicate(t *testing.T) {
	bubble(t, nil, func(t *rig) {
		t.behaves(twoAgree)
		first := serving.Feedback{QueryID: t.predict(0).QueryID, Label: says(t, "7")}
		t.must(first)
		for x := range 100 {
			t.must(serving.Feedback{QueryID: t.predict(float64(x + 1)).QueryID, Label: says(t, "7")})
		}
		if l := t.must(first); !l.Duplicate || t.steps() != 101 {
			t.Errorf("%+v, and %v pieces learned", l, t.steps())
		}
	})
}

func TestFeedbackByInput(t *testing.T) {
	bubble(t, nil, func(t *rig) {
		t.behaves(twoAgree)
		t.predict(1)
		p := t.predict(1)
		l := t.must(serving.Feedback{User: "ann", Input: input(1), Label: says(t, "7")})
		if l.QueryID != p.QueryID || l.Joined != serving.FromRecord {
			t.Errorf("learned %+v, want the newest answer", l)
		}
		if l := t.must(serving.Feedback{User: "ann", Input: input(1), Label: says(t, "7")}); !l.Duplicate {
			t.Errorf("again: %+v", l)
		}
		calls := t.calls()
		l = t.must(serving.Feedback{User: "bob", Input: input(1), Label: says(t, "7")})
		if l.QueryID != 0 || l.Joined != serving.FromCache || t.calls() != calls || len(l.Models) != 3 {
			t.Errorf("of another user: %+v, %d models asked", l, t.calls()-calls)
		}
		l = t.must(serving.Feedback{User: "bob", Input: input(2), Label: says(t, "8")})
		if loss, judged := outcome(&l, "b"); l.Joined != serving.FromModels || t.calls() != calls+3 || loss != 0 || !judged {
			t.Errorf("of another input: %+v, %d models asked", l, t.calls()-calls)
		}
		if n := t.metric(`topsail_gateway_answers_total{app="app",cause="ok"}`); n != 2 {
			t.Errorf("%v answers counted, want those to clients", n)
		}
	})
}

// TestFeedbackOfOneIDCountsOnce, with a record and without, at every gateway.
func TestFeedbackOfOneIDCountsOnce(t *testing.T) {
	bubble(t, nil, func(t *rig) {
		t.behaves(twoAgree)
		f := serving.Feedback{ID: "f", User: "ann", Input: input(1), Label: says(t, "7")}
		if l := t.must(f); l.Duplicate || l.QueryID != 0 || l.Joined != serving.FromModels {
			t.Errorf("without a record: %+v", l)
		}
		calls := t.calls()
		if l := t.must(f); !l.Duplicate || l.QueryID != 0 || t.calls() != calls || t.steps() != 1 {
			t.Errorf("again: %+v, %d models asked, %v pieces learned", l, t.calls()-calls, t.steps())
		}
		other := f
		other.ID = "g"
		if l := t.must(other); l.Duplicate || t.steps() != 2 {
			t.Errorf("of another id: %+v, %v pieces learned", l, t.steps())
		}

		// The newest answer to the input is another one when it is sent again.
		t.predict(2)
		f = serving.Feedback{ID: "h", Input: input(2), User: "ann", Label: says(t, "7")}
		first := t.must(f)
		t.predict(2)
		if l := t.must(f); first.Duplicate || first.QueryID == 0 || !l.Duplicate || t.steps() != 3 {
			t.Errorf("with a record: %+v, then %+v, %v pieces learned", first, l, t.steps())
		}

		list := []serving.Feedback{{App: "app", ID: "i", Input: input(3), Label: says(t, "7")}, {App: "app", ID: "i", Input: input(3), Label: says(t, "7")}}
		if all, err := t.Feedback(t.Context(), list); err != nil || all[0].Duplicate || !all[1].Duplicate || t.steps() != 4 {
			t.Errorf("in one batch: %+v, %v, %v pieces learned", all, err, t.steps())
		}

		// What could not be stored is learned when it is sent again.
		f = serving.Feedback{ID: "j", Input: input(4), Label: says(t, "7")}
		t.store.is(errAway, 0)
		if _, err := t.learn(f); !errors.Is(err, serving.ErrUnavailable) {
			t.Errorf("while the store is unavailable: %v", err)
		}
		t.store.is(nil, 0)
		time.Sleep(time.Minute)
		if l := t.must(f); l.Duplicate || t.steps() != 5 {
			t.Errorf("when it is back: %+v, %v pieces learned", l, t.steps())
		}
	})
}

// While no model answers, feedback for an input without a record cannot be judged; a policy
// that does not learn needs no judgement, as in Clipper.
func TestFeedbackWithoutAModel(t *testing.T) {
	silent := func(string, float64) (float64, time.Duration) { return 0, time.Hour }
	f := serving.Feedback{Input: input(1), User: "ann", Label: says(t, "7")}
	bubble(t, nil, func(t *rig) {
		t.behaves(silent)
		if _, err := t.learn(f); !errors.Is(err, serving.ErrUnjudged) {
			t.Errorf("a policy that learns: %v", err)
		}
	})
	bubble(t, func(a *serving.App) { a.Policy = serving.PolicySpec{Kind: serving.PolicySingle} }, func(t *rig) {
		t.behaves(silent)
		t.must(f)
	})
}

// A model that was late is looked for in the cache, or called again; one that stays
// silent is not judged, and holds nobody up for longer than the patience.
func TestWhoWasLate(t *testing.T) {
	bubble(t, nil, func(t *rig) {
		t.behaves(func(model string, _ float64) (float64, time.Duration) {
			return 7, map[string]time.Duration{"b": 300 * time.Millisecond, "c": time.Hour}[model]
		})
		p := t.predict(1)
		if len(p.Missing) != 2 {
			t.Fatalf("missing %v", p.Missing)
		}
		time.Sleep(time.Second)
		start := time.Now()
		l := t.must(serving.Feedback{QueryID: p.QueryID, Label: says(t, "8")})
		if took := time.Since(start); took != patience {
			t.Errorf("it took %v, want the patience once", took)
		}
		if loss, judged := outcome(&l, "b"); loss != 1 || !judged {
			t.Errorf("who came late: %v, %v", loss, judged)
		}
		if _, judged := outcome(&l, "c"); judged {
			t.Error("who never came is judged")
		}
		if s := t.metric("topsail_feedback_total"); s != -1 {
			t.Error("a series without labels")
		}
		t.behaves(twoAgree) // so that the replica's silence ends with the test
	})
}

// A record of another gateway may come a moment after its answer.
func TestARecordOfAnotherGateway(t *testing.T) {
	bubble(t, nil, func(t *rig) {
		ctx, stop := context.WithCancel(t.Context())
		var all sync.WaitGroup
		other := newRig(t, ctx, &all, t.store)
		other.serves(nil)
		time.Sleep(time.Millisecond)
		other.behaves(twoAgree)
		p := other.predict(1)
		l := t.must(serving.Feedback{QueryID: p.QueryID, Label: says(t, "7")})
		if l.Joined != serving.FromRecord || l.QueryID != p.QueryID || l.Loss != 0 {
			t.Errorf("learned %+v", l)
		}
		if l, err := other.learn(serving.Feedback{QueryID: p.QueryID, Label: says(t, "7")}); err != nil || !l.Duplicate {
			t.Errorf("again at the other: %+v, %v", l, err)
		}
		stop()
		all.Wait()
		other.cache.Close()
	})
}

func TestFeedbackThatIsRefused(t *testing.T) {
	nan := -1.0
	nan = (nan + 1) / (nan + 1)
	bubble(t, nil, func(t *rig) {
		p := t.predict(1)
		half, large := 0.5, 1.5
		label := says(t, "7")
		for _, test := range []struct {
			f     serving.Feedback
			words string
		}{
			{serving.Feedback{Label: label}, "needs the query_id"},
			{serving.Feedback{QueryID: p.QueryID}, "either a label or a reward"},
			{serving.Feedback{QueryID: p.QueryID, Label: label, Reward: &half}, "either a label or a reward"},
			{serving.Feedback{QueryID: p.QueryID, Reward: &large}, "between 0 and 1"},
			{serving.Feedback{QueryID: p.QueryID, Reward: &nan}, "between 0 and 1"},
			{serving.Feedback{QueryID: 12345, Label: label}, "Unknown query_id: 12345"},
			{serving.Feedback{QueryID: p.QueryID, User: "bob", Label: label}, "another uid"},
			{serving.Feedback{QueryID: p.QueryID, Input: input(2), Label: label}, "another input"},
			{serving.Feedback{Input: serving.Input{Type: serving.Strings, Data: []byte("x")}, Label: label}, "Input of type strings"},
			{serving.Feedback{QueryID: p.QueryID, Label: says(t, "[1,2]")}, "not a single label"},
			{serving.Feedback{QueryID: p.QueryID, Label: &serving.Output{}}, "empty"},
		} {
			t.refused(test.f, test.words)
		}
		list := []serving.Feedback{
			{App: "app", QueryID: p.QueryID, Label: label}, {App: "app", QueryID: p.QueryID, Label: says(t, "[1]")},
		}
		if _, err := t.Feedback(t.Context(), list); err == nil || !strings.HasPrefix(err.Error(), "feedback_batch[1]: ") {
			t.Errorf("of two, the second wrong: %v", err)
		}
		if t.steps() != 0 {
			t.Errorf("%v pieces learned", t.steps())
		}
		if _, err := t.Feedback(t.Context(), []serving.Feedback{{App: "x"}}); !errors.Is(err, serving.ErrUnknownApp) {
			t.Errorf("on an unknown app: %v", err)
		}
		if n := t.metric(`topsail_feedback_total{app="app",result="refused"}`); n != 13 {
			t.Errorf("%v pieces refused", n)
		}
	})
}

func TestLabelsOfEachType(t *testing.T) {
	tests := map[string]struct {
		change func(a *serving.App)
		good   string
		bad    map[string]string
	}{
		"numbers": {func(a *serving.App) {
			a.OutputType, a.Policy = serving.OutputNumber, serving.PolicySpec{Kind: serving.PolicyStacking, Loss: serving.LossSquared}
		}, "7.5", map[string]string{`"x"`: "not a number", "[1]": "not a number", "true": "not a number"}},
		"vectors": {func(a *serving.App) {
			a.OutputType, a.Policy = serving.OutputVector, serving.PolicySpec{Kind: serving.PolicyStacking, Loss: serving.LossAbsolute}
		}, "[7]", map[string]string{`"x"`: "not a vector", "[[1]]": "not a vector", "[1,2]": "another number of elements"}},
		"anything": {func(a *serving.App) {
			a.Policy = serving.PolicySpec{Kind: serving.PolicyExp3, Loss: serving.LossAbsolute, Scale: 10}
		}, "3", map[string]string{`{"x":1}`: "not a number or vector"}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			bubble(t, test.change, func(t *rig) {
				p := t.predict(7)
				for label, words := range test.bad {
					t.refused(serving.Feedback{QueryID: p.QueryID, Label: says(t, label)}, words)
				}
				l := t.must(serving.Feedback{QueryID: p.QueryID, Label: says(t, test.good)})
				if l.Duplicate || len(l.Trained) == 0 || !(l.Loss >= 0 && l.Loss <= 1) {
					t.Errorf("learned %+v", l)
				}
			})
		})
	}
}

// Feedback on an answer that another app gave as the last stage is for that app, whose policy learns from it, once.
func TestFeedbackForTheAppOfAStage(t *testing.T) {
	bubble(t, func(a *serving.App) {
		a.Models, a.Policy = nil, serving.PolicySpec{}
		a.Stages = serving.Pipeline{{Name: "first", Model: "a"}, {Name: "last", App: "inner"}}
	}, func(t *rig) {
		t.behaves(twoAgree)
		inner := func() float64 {
			s, _, err := t.states.Explain(t.Context(), t.p.Learning("inner"), "", "")
			require.NoError(t, err)
			return s.Steps
		}
		p := t.predict(7)
		f := serving.Feedback{QueryID: p.QueryID, Label: says(t, "7")}
		if l := t.must(f); l.Duplicate || len(l.Models) != len(models) || inner() != 1 {
			t.Errorf("learned %+v, the app of the stage %v times", l, inner())
		}
		if l := t.must(f); !l.Duplicate || inner() != 1 {
			t.Errorf("the same again: %+v, the app of the stage %v times", l, inner())
		}

		p = t.predict(8)
		t.recorder.Flush(t.Context())
		t.store.is(errors.New("the store is away"), 0)
		if _, err := t.learn(serving.Feedback{QueryID: p.QueryID, Label: says(t, "7")}); !errors.Is(err, serving.ErrUnavailable) {
			t.Errorf("without the store: %v", err)
		}
		t.store.is(nil, 0)
		if t.must(serving.Feedback{QueryID: p.QueryID, Label: says(t, "7")}); inner() != 2 {
			t.Errorf("sent again, the app of the stage has learned %v times", inner())
		}
	})
}

// A batch is learned as a whole, in order, and an answer once.
func TestABatchOfFeedback(t *testing.T) {
	bubble(t, nil, func(t *rig) {
		t.behaves(twoAgree)
		var list []serving.Feedback
		for x := range 200 {
			list = append(list, serving.Feedback{App: "app", QueryID: t.predict(float64(x)).QueryID, Label: says(t, "7")})
		}
		list = append(list, list[3], serving.Feedback{App: "app", User: "bob", Input: input(500), Label: says(t, "8")})
		learned, err := t.Feedback(t.Context(), list)
		if err != nil || len(learned) != len(list) {
			t.Fatalf("%d of %d: %v", len(learned), len(list), err)
		}
		for i, l := range learned {
			if l.QueryID != list[i].QueryID || l.Duplicate != (i == 200) {
				t.Errorf("piece %d: %+v", i, l)
			}
		}
		if t.steps() != 201 {
			t.Errorf("%v pieces learned", t.steps())
		}
	})
}

// An app whose policy keeps no state takes feedback for its metrics.
func TestAPolicyThatDoesNotLearn(t *testing.T) {
	bubble(t, func(a *serving.App) { a.Policy = serving.PolicySpec{Kind: serving.PolicyVote} }, func(t *rig) {
		p := t.predict(7)
		f := serving.Feedback{App: "app", QueryID: p.QueryID, Label: says(t, "7")}
		learned, err := t.Feedback(t.Context(), []serving.Feedback{f, f})
		if err != nil || learned[0].Duplicate || !learned[1].Duplicate || learned[0].Trained != nil {
			t.Errorf("%+v, %v", learned, err)
		}
		if l := t.must(f); !l.Duplicate {
			t.Errorf("again: %+v", l)
		}
		if n := t.metric(`topsail_feedback_total{app="app",result="trained"}`); n != 1 {
			t.Errorf("%v pieces trained", n)
		}
	})
}

// While the store is unavailable nothing is said to be learned, and later all is.
func TestTheStoreIsAway(t *testing.T) {
	bubble(t, nil, func(t *rig) {
		f := serving.Feedback{QueryID: t.predict(7).QueryID, Label: says(t, "7")}
		time.Sleep(time.Second)
		byInput := serving.Feedback{User: "ann", Input: input(7), Label: says(t, "7")}
		for name, f := range map[string]serving.Feedback{"by id": f, "by input": byInput} {
			t.store.is(errAway, 0)
			if _, err := t.learn(f); !errors.Is(err, serving.ErrUnavailable) || !errors.Is(err, errAway) {
				t.Errorf("%s: %v", name, err)
			}
			t.store.is(nil, time.Minute)
			start := time.Now()
			if _, err := t.learn(f); !errors.Is(err, serving.ErrUnavailable) || time.Since(start) > within {
				t.Errorf("%s, slow: %v after %v", name, err, time.Since(start))
			}
			f.Timeout = time.Second
			start = time.Now()
			if _, err := t.learn(f); !errors.Is(err, serving.ErrUnavailable) || time.Since(start) > time.Second {
				t.Errorf("%s, in a second: %v after %v", name, err, time.Since(start))
			}
			time.Sleep(2 * time.Minute) // until the store has done what it was asked
		}
		t.store.is(nil, 0)
		time.Sleep(2 * time.Minute)
		if l := t.must(f); l.Duplicate || l.Joined != serving.FromRecord {
			t.Errorf("when it is back: %+v", l)
		}
		if n := t.metric(`topsail_feedback_total{app="app",result="failed"}`); n != 6 {
			t.Errorf("%v pieces failed", n)
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if _, err := t.Feedback(ctx, []serving.Feedback{{App: "app", Input: input(99), Label: says(t, "7")}}); !errors.Is(err, context.Canceled) {
			t.Errorf("of a client that has gone: %v", err)
		}
	})
}
