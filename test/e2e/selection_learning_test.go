//go:build system

package e2e

import (
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/topsail-serving/topsail/serving"
)

// Policies that ask one model for each query come to ask the better one.
func TestBanditsFindTheBetterModel(t *testing.T) {
	h := newHouse(t)
	h.model("good", says("dog"))
	h.model("poor", says("cat"))
	kinds := []string{serving.PolicyExp3, serving.PolicyThompson, serving.PolicyUCB1, serving.PolicyEpsilonGreedy, serving.PolicyLinUCB}
	for _, kind := range kinds {
		h.app(kind, ample, serving.PolicySpec{Kind: kind}, "good", "poor")
	}
	e, in := h.learner()
	for _, kind := range kinds {
		const rounds, each = 30, 10
		good := 0 // in the last ten rounds
		for round := range rounds {
			dogs := e.round(kind, round, each)
			if round >= rounds-10 {
				good += dogs
			}
		}
		s, standings := e.explain(in, kind, "")
		t.Logf("%s: %d of the last 100 queries went to the better model; %+v", kind, good, standings)
		if good < 70 {
			t.Errorf("%s: %d of the last 100 queries went to the better model", kind, good)
		}
		if s.Steps != rounds*each || standings[0].Worth <= standings[1].Worth {
			t.Errorf("%s: %v steps, standings %+v", kind, s.Steps, standings)
		}
	}
}

// round asks a batch, gives the feedback that dogs were right, and says how many answers
// were dogs.
func (e *edge) round(app string, round, each int) (dogs int) {
	e.t.Helper()
	var inputs, feedback []string
	for i := range each {
		inputs = append(inputs, fmt.Sprintf("[%d,%d]", round, i))
	}
	status, text, err := e.send(app+"/predict", `{"input_batch":[`+strings.Join(inputs, ",")+`]}`, "*/*")
	var batch struct {
		Predictions []answer `json:"batch_predictions"`
	}
	if err == nil {
		err = json.Unmarshal([]byte(text), &batch)
	}
	if err != nil || status != 200 || len(batch.Predictions) != each {
		e.t.Fatalf("status %d, %s, %v", status, text, err)
	}
	for _, a := range batch.Predictions {
		if a.says() == "dog" {
			dogs++
		}
		feedback = append(feedback, fmt.Sprintf(`{"query_id":%d,"label":"dog"}`, a.QueryID))
	}
	for _, l := range e.teach(app, `{"feedback_batch":[`+strings.Join(feedback, ",")+`]}`).Feedback {
		if l.Duplicate || l.Joined != "record" {
			e.t.Fatalf("%s: %+v", app, l)
		}
	}
	return dogs
}

// Each user has a state, and one who is new begins with what the app has learned.
func TestUsersLearnForThemselves(t *testing.T) {
	h, _ := pets(t)
	h.app("alike", ample, serving.PolicySpec{Kind: serving.PolicyExp4, Scope: serving.ScopeApp}, "a", "b")
	h.app("places", ample, serving.PolicySpec{Kind: serving.PolicyExp4, Scope: serving.ScopeUserContext}, "a", "b")
	e, _ := h.learner()
	for i := range 10 {
		e.teach("pets", fmt.Sprintf(`{"input":[%d],"uid":"ann","label":"dog"}`, i))
		e.teach("pets", fmt.Sprintf(`{"input":[%d],"uid":"ann","label":"dog"}`, 100+i))
		e.teach("pets", fmt.Sprintf(`{"input":[%d],"uid":"bob","label":"cat"}`, i))
		e.teach("alike", fmt.Sprintf(`{"input":[%d],"uid":"ann","label":"dog"}`, i))
		e.teach("places", fmt.Sprintf(`{"input":[%d],"uid":"ann","context":"home","label":"dog"}`, i))
	}
	for _, tt := range []struct{ app, who, want string }{
		{"pets", `"uid":"ann"`, "dog"},
		{"pets", `"uid":"bob"`, "cat"},
		{"pets", `"uid":"new"`, "dog"}, // ann has said more than bob
		{"pets", `"context":"home"`, "dog"},
		{"alike", `"uid":"bob"`, "dog"},
		{"places", `"uid":"ann","context":"home"`, "dog"},
		{"places", `"uid":"bob","context":"home"`, "dog"},
	} {
		e.wants(tt.app, fmt.Sprintf(`{"input":[1],%s}`, tt.who), tt.want)
	}
	e.teach("places", `{"input":[1],"uid":"ann","context":"work","label":"cat"}`)
	for i := range 10 {
		e.teach("places", fmt.Sprintf(`{"input":[%d],"uid":"ann","context":"work","label":"cat"}`, i))
		e.teach("places", fmt.Sprintf(`{"input":[%d],"uid":"ann","context":"work","label":"cat"}`, 100+i))
	}
	e.wants("places", `{"input":[1],"uid":"ann","context":"work"}`, "cat")
	e.wants("places", `{"input":[1],"uid":"ann","context":"home"}`, "dog")
}

// Feedback is learned at whichever gateway it comes, and no other loses it.
func TestAnyGatewayTakesFeedback(t *testing.T) {
	in := startRedis(t)
	h, _ := pets(t)
	first, second := h.gateway("first", inRedis(t, in)), h.gateway("second", inRedis(t, in))
	for i := range 5 {
		asked := first.ask("pets", fmt.Sprintf(`{"input":[%d],"uid":"ann"}`, i))
		l := second.teach("pets", fmt.Sprintf(`{"query_id":%d,"label":"dog"}`, asked.QueryID))
		if l.Joined != "record" || l.Duplicate || l.QueryID != asked.QueryID || len(l.Trained) != 2 {
			t.Fatalf("%+v", l)
		}
		if l := first.teach("pets", fmt.Sprintf(`{"uid":"ann","input":[%d],"label":"dog"}`, i)); !l.Duplicate || l.QueryID != asked.QueryID {
			t.Fatalf("%+v", l)
		}
	}
	second.wants("pets", `{"input":[1],"uid":"ann"}`, "dog")
	eventually(t, func() bool { a := first.ask("pets", `{"input":[1],"uid":"ann"}`); return a.says() == "dog" })
	if s, _ := first.explain(inRedis(t, in), "pets", "ann"); s.Steps != 5 {
		t.Errorf("ann's state has %v steps, want 5", s.Steps)
	}
	h.trainTogether(first, second)
	if s, _ := first.explain(inRedis(t, in), "pets", ""); s.Steps != 5+2*20 {
		t.Errorf("the app's state has %v steps, want 45", s.Steps)
	}
}

// trainTogether has both gateways train the app's state at the same time.
func (h *house) trainTogether(gateways ...*edge) {
	h.t.Helper()
	var running sync.WaitGroup
	for _, e := range gateways {
		running.Go(func() {
			for i := range 20 {
				status, text, err := e.send("pets/update", fmt.Sprintf(`{"input":[%d],"label":"dog"}`, i), "*/*")
				if err != nil || status != 200 {
					h.t.Errorf("status %d, %s, %v", status, text, err)
				}
			}
		})
	}
	running.Wait()
}
