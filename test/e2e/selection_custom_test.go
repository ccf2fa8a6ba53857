//go:build system

package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/topsail-serving/topsail/containers/gocontainer"
	"github.com/topsail-serving/topsail/serving"
)

// brain is a model that decides: it asks whom its state names, at first all, and answers
// with the first output; its state is the name of a model that was right.
func brain(_ context.Context, in serving.Value) gocontainer.Result {
	type model struct {
		Model  string          `json:"model"`
		Output json.RawMessage `json:"output"`
		Loss   *float64        `json:"loss"`
	}
	var request struct {
		Op         string  `json:"op"`
		State      string  `json:"state"`
		Candidates []model `json:"candidates"`
		Answers    []model `json:"answers"`
		Feedback   struct {
			Answers []model `json:"answers"`
		} `json:"feedback"`
	}
	if err := json.Unmarshal(in.Data, &request); err != nil {
		return gocontainer.Result{Err: err}
	}
	said := map[string]any{}
	switch request.Op {
	case "select":
		var names []string
		for _, c := range request.Candidates {
			if request.State == "" || request.State == c.Model {
				names = append(names, c.Model)
			}
		}
		said["ask"] = names
	case "combine":
		said["model"] = request.Answers[0].Model
	case "train":
		said["state"] = request.State
		for _, a := range request.Feedback.Answers {
			if a.Loss != nil && *a.Loss == 0 {
				said["state"] = a.Model
			}
		}
	}
	text, err := json.Marshal(said)
	return gocontainer.Result{Output: serving.Value{DType: serving.JSON, Data: text}, Err: err}
}

// A model of the user's own chooses, combines and learns; when it is slow or gone, the
// fallback does, in time.
func TestAContainerDecides(t *testing.T) {
	const slo = 2 * time.Second
	h, slow := newHouse(t), newGate()
	h.model("a", says("cat"))
	h.model("b", says("dog"))
	h.model("c", says("owl"))
	v := h.version("brain", "1")
	v.InputType = serving.Strings
	die := h.replica(v, model(brain).behind(slow))
	app := h.app("app", slo, serving.PolicySpec{
		Kind: serving.PolicyCustom, Model: "brain", WithinMicros: 700_000, Scope: serving.ScopeApp,
		Fallback: &serving.PolicySpec{Kind: serving.PolicySingle, Model: "c"},
	}, "a", "b", "c")
	e, in := h.learner()

	a := e.wants("app", `{"input":[1],"explain":true}`, "cat")
	if len(a.Explanation.Models) != 3 {
		t.Errorf("the model asks all three: %+v", a.Explanation)
	}
	e.teach("app", fmt.Sprintf(`{"query_id":%d,"label":"dog"}`, a.QueryID))
	if s, _ := e.explain(in, "app", ""); string(s.Blob) != `"b"` {
		t.Fatalf("its state is %s", s.Blob)
	}
	if a := e.wants("app", `{"input":[2],"explain":true}`, "dog"); len(a.Explanation.Models) != 1 {
		t.Errorf("the model asks b alone: %+v", a.Explanation)
	}

	if dogs := e.round("app", 3, 20); dogs != 20 {
		t.Errorf("b answers %d of a batch of 20", dogs)
	}

	inTime := func(what string) {
		t.Helper()
		late := watchLateness(t)
		answers := e.askMany("app", 4, 5)
		for _, a := range answers {
			if a.Default || a.says() != "owl" {
				t.Fatalf("%s: the fallback answers %s (%s)", what, a.Output, a.Why)
			}
		}
		if p := quantile(answers, 0.99); p > slo+late() {
			t.Errorf("%s: p99 %v, with an objective of %v", what, p, slo)
		}
	}
	slow.shut()
	inTime("slow")
	slow.open()
	eventually(t, func() bool { return e.ask("app", `{"input":[3]}`).says() == "dog" })
	was, _ := in.stored(t, app, "")
	die()
	inTime("dead")
	if is, _ := in.stored(t, app, ""); is != was {
		t.Errorf("the state is %s, and was %s", is, was)
	}
	h.replica(v, brain)
	eventually(t, func() bool { return e.ask("app", `{"input":[3]}`).says() == "dog" }) // by the state that was kept
}
