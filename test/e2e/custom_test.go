package e2e

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/topsail-serving/topsail/containers/gocontainer"
	"github.com/topsail-serving/topsail/serving"
)

// brain is a model that decides: it asks whom its state names, at first all, and answers with the
// first output; its state is the name of a model that was right.
func brain(q gocontainer.Query) gocontainer.Result {
	type model struct {
		Model string   `json:"model"`
		Loss  *float64 `json:"loss"`
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
	if err := json.Unmarshal(q.Inputs[0].Data, &request); err != nil {
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

// A model of the user's own chooses, combines and learns. While it is gone or too slow the fallback does,
// in time, and what it has learned is there when it is back.
func TestAContainerDecides(t *testing.T) {
	const within = 700 * time.Millisecond
	bubble(t, func(s *story) {
		s.deploy("a", says("cat"))
		s.deploy("b", says("dog"))
		s.deploy("c", says("owl"))
		v := s.version("brain", "1")
		v.InputType = serving.Strings
		stop := s.replica(v, brain)
		s.app("app", serving.PolicySpec{
			Kind: serving.PolicyCustom, Model: "brain", WithinMicros: within.Microseconds(), Scope: serving.ScopeApp,
			Fallback: &serving.PolicySpec{Kind: serving.PolicySingle, Model: "c"},
		}, "a", "b", "c")
		e := s.gateway(s.open(s.TempDir()))
		answers := func(output string, models int, took time.Duration) answer {
			t.Helper()
			a := e.wants("app", `{"input":[1],"no_cache":true,"explain":true}`, output)
			if asked := strings.Count(a.text, `"asked":true`); asked != models || a.took != took {
				t.Errorf("%d models were asked, in %v, want %d in %v: %s", asked, a.took, models, took, a.text)
			}
			return a
		}

		const turns = 3 * time.Millisecond // to select, to answer and to combine
		a := answers("cat", 3, turns)
		e.teach("app", fmt.Sprintf(`{"query_id":%d,"label":"dog"}`, a.QueryID))
		answers("dog", 1, turns)
		if dogs := e.round("app", 1, 20); dogs != 20 {
			t.Errorf("b answers %d of a batch of 20", dogs)
		}

		stop()
		settle()
		answers("owl", 1, within+time.Millisecond)
		stop = s.replica(v, model(brain).after(time.Second))
		settle()
		answers("owl", 1, within+time.Millisecond)
		stop()
		s.replica(v, brain)
		settle()
		answers("dog", 1, turns)
	})
}
