package predict

import (
	"encoding/json"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/topsail-serving/topsail/rpc"
	"github.com/topsail-serving/topsail/serving"
)

// decidesBy registers "app", whose queries to models a and b the model m decides.
func (r *rig) decidesBy(within time.Duration) { r.set(decided(within)) }

func decided(within time.Duration) *serving.Catalog {
	a := newApp("app", "a", "b")
	a.Policy = serving.PolicySpec{Kind: serving.PolicyCustom, Model: "m", WithinMicros: within.Microseconds()}
	m := newModel(m1)
	m.Versions["1"].InputType = serving.Strings
	return newCatalog([]*serving.App{a}, newModel(a1), newModel(b1), m)
}

// text is an answer of the model that decides.
func text(v any) rpc.Answer {
	b, err := json.Marshal(v)
	if err != nil {
		return rpc.Answer{Status: rpc.StatusModelError, Message: []byte(err.Error())}
	}
	return rpc.Answer{Payload: rpc.AppendPayload(nil, serving.Value{DType: serving.JSON, Data: b})}
}

// A model decides by way of its replicas: whom to ask, and what to answer. The queries
// of a batch are decided at the same time.
func TestAModelDecides(t *testing.T) {
	bubble(t, func(t *rig) {
		var turns atomic.Int64
		t.replica("r", by(map[string]behaviour{
			"a": echoes(0), "b": says(2, time.Millisecond),
			"m": func(arrival) (rpc.Answer, time.Duration) {
				turns.Add(1)
				return text(map[string]any{"ask": []string{"b"}, "model": "b"}), 2 * time.Millisecond
			},
		}), a1, b1, m1)
		t.decidesBy(0)
		p, took := t.predict(newQuery(7))
		t.wantOutput(p, 2)
		if took != 5*time.Millisecond || p.Model != b1 || turns.Load() != 2 {
			t.Errorf("it took %v and %d turns: %+v", took, turns.Load(), p)
		}
		qs := make([]serving.Query, 20)
		for i := range qs {
			qs[i] = *newQuery(float64(100 + i))
		}
		start := time.Now()
		for _, p := range t.batch(qs) {
			t.wantOutput(p, 2)
		}
		if took := time.Since(start); took != 5*time.Millisecond {
			t.Errorf("a batch took %v", took)
		}
		if n := t.metric(`topsail_gateway_answers_total{app="app",cause="ok"}`); n != 21 {
			t.Errorf("%v answers counted, want those to clients", n)
		}
	})
}

// A model that is told of answers as they come finishes with the first while another is silent, or has the next asked.
func TestAModelDecidesAsAnswersCome(t *testing.T) {
	type told struct {
		Op      string
		Elapsed int64 `json:"elapsed_micros"`
		Answers []struct {
			Output float64
			After  int64 `json:"after_micros"`
		}
		Awaited []any
	}
	tests := map[string]struct {
		b    behaviour
		says func(told) map[string]any
		want float64
		took time.Duration
	}{
		"finishes": {silent, func(q told) map[string]any {
			if q.Op == "answer" && q.Elapsed == 1000 && q.Answers[0].After == 1000 && q.Answers[0].Output == 1 && len(q.Awaited) == 1 {
				return map[string]any{"model": "a"}
			}
			return map[string]any{"ask": []string{"a", "b"}, "answers": true}
		}, 1, time.Millisecond},
		"asks the next": {says(2, 5*time.Millisecond), func(q told) map[string]any {
			switch {
			case q.Op == "answer" && len(q.Awaited) == 0:
				return map[string]any{"next": 1}
			case q.Op == "combine" && q.Elapsed == 6000 && q.Answers[0].After == 1000 && q.Answers[1].After == 6000:
				return map[string]any{"model": "b"}
			}
			return map[string]any{"ask": []string{"a", "b"}, "first": 1, "answers": true}
		}, 2, 6 * time.Millisecond},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *rig) {
				t.replica("r", by(map[string]behaviour{
					"a": says(1, time.Millisecond), "b": test.b,
					"m": func(a arrival) (rpc.Answer, time.Duration) {
						var q told
						if err := json.Unmarshal([]byte(a.text), &q); err != nil {
							return text(err.Error()), 0
						}
						return text(test.says(q)), 0
					},
				}), a1, b1, m1)
				t.decidesBy(0)
				p, took := t.predict(newQuery(7))
				t.wantOutput(p, test.want)
				if took != test.took {
					t.Errorf("it took %v, want %v: %+v", took, test.took, p)
				}
			})
		})
	}
}

// A batch with an input that no model takes is refused before anything of it is asked.
func TestABatchThatDoesNotFit(t *testing.T) {
	bubble(t, func(t *rig) {
		a := t.replica("r", by(map[string]behaviour{"a": echoes(0), "b": echoes(0), "m": echoes(0)}), a1, b1, m1)
		cat := decided(0)
		for _, model := range []string{"a", "b"} {
			cat.Models[model].Versions["1"].InputLength = 1
		}
		t.set(cat)
		qs := []serving.Query{*newQuery(1), *newQuery(2), *newQuery(3, 4)}
		if _, err := t.p.Predict(t.ctx, qs...); err == nil || !strings.Contains(err.Error(), "Input has length 2") {
			t.Errorf("error %v", err)
		}
		if n := len(a.questions()); n != 0 {
			t.Errorf("%d were asked", n)
		}
	})
}

// When the model is silent, fails, is not there or speaks nonsense, the fallback
// decides in its place, in time.
func TestAModelThatDoesNotDecide(t *testing.T) {
	within := 10 * time.Millisecond
	tests := map[string]struct {
		behave behaviour
		took   time.Duration
	}{
		"silent":   {silent, within},
		"failing":  {fails(rpc.StatusModelError, "no"), 0},
		"babbling": {says(7, 0), 0},
		"nonsense": {func(arrival) (rpc.Answer, time.Duration) { return text(map[string]any{"ask": []string{"x"}}), 0 }, 0},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *rig) {
				t.replica("r", by(map[string]behaviour{"a": echoes(0), "m": test.behave}), a1, m1)
				t.decidesBy(within)
				p, took := t.predict(newQuery(7))
				t.wantOutput(p, 7)
				if took != test.took {
					t.Errorf("it took %v, want %v", took, test.took)
				}
			})
		})
	}
}
