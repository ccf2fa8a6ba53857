//go:build system

package e2e

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/topsail-serving/topsail/serving"
)

// pets is a house with two models that disagree, and an app that weighs them by feedback.
func pets(t *testing.T) (*house, *serving.App) {
	h := newHouse(t)
	h.model("a", says("cat"))
	h.model("b", says("dog"))
	return h, h.app("pets", ample, serving.PolicySpec{Kind: serving.PolicyExp4}, "a", "b")
}

func TestFeedbackNamesItsAnswerInEveryWay(t *testing.T) {
	h, a := pets(t)
	e, in := h.learner()
	one := e.wants("pets", `{"input":[1],"uid":"ann"}`, "cat")
	two := e.wants("pets", `{"input":[2],"uid":"ann"}`, "cat")
	three := e.wants("pets", `{"input":[3],"uid":"ann"}`, "cat")
	for _, tt := range []struct {
		body   string
		query  int64
		joined string
		loss   float64
		judged int
	}{
		{fmt.Sprintf(`{"query_id":%d,"label":"dog"}`, one.QueryID), one.QueryID, "record", 1, 2},
		{`{"uid":"ann","input":[2],"label":"cat"}`, two.QueryID, "record", 0, 2},
		{fmt.Sprintf(`{"query_id":%d,"input":[3],"uid":"ann","reward":0.25}`, three.QueryID), three.QueryID, "record", 0.75, 1},
		{`{"uid":"ann","input":[4],"label":"cat"}`, 0, "models", 0, 2},
	} {
		l := e.teach("pets", tt.body)
		judged := 0
		for _, m := range l.Models {
			if m.Loss != nil {
				judged++
			}
		}
		if !l.Received || l.Duplicate || l.QueryID != tt.query || l.Joined != tt.joined || l.Loss != tt.loss || len(l.Models) != 2 || judged != tt.judged {
			t.Errorf("%s: %+v", tt.body, l)
		}
		if len(l.Trained) != 2 || l.Trained[0]["user"] != "ann" || len(l.Trained[1]) != 0 {
			t.Errorf("%s trained %v, want ann's state and the app's", tt.body, l.Trained)
		}
	}
	if s, standings := e.explain(in, "pets", "ann"); s.Steps != 4 || s.Loss != 1.75 || len(standings) != 2 {
		t.Errorf("the state is %+v", s)
	}

	batch := e.teach("pets", `{"feedback_batch":[{"uid":"bob","input":[7],"label":"dog"},{"uid":"eve","input":[8],"reward":1},{"input":[9],"label":"dog"}]}`)
	if len(batch.Feedback) != 3 {
		t.Fatalf("a batch of 3 got %+v", batch)
	}
	for i, user := range []string{"bob", "eve", ""} {
		if text, _ := in.stored(t, a, user); text == "" || batch.Feedback[i].Duplicate {
			t.Errorf("%q learned nothing: %+v", user, batch.Feedback[i])
		}
	}
	if s, _ := e.explain(in, "pets", ""); s.Steps != 7 {
		t.Errorf("the app's state has %v steps, want 7", s.Steps)
	}
	if status, text, err := e.send("pets/update", `{"uid":"ann","input":[2],"label":2.0}`, "*/*"); err != nil || status != 200 || text != "Feedback received? 1" {
		t.Errorf("a client of Clipper gets %d %q, %v", status, text, err)
	}
}

func TestFeedbackThatComesTwiceIsLearnedOnce(t *testing.T) {
	h, a := pets(t)
	e, in := h.learner()
	asked := e.wants("pets", `{"input":[1],"uid":"ann"}`, "cat")
	byID := fmt.Sprintf(`{"query_id":%d,"label":"dog"}`, asked.QueryID)
	if l := e.teach("pets", byID); l.Duplicate {
		t.Fatalf("%+v", l)
	}
	_, was := in.stored(t, a, "ann")
	_, wasOfApp := in.stored(t, a, "")
	for _, again := range []string{byID, `{"uid":"ann","input":[1],"label":"dog"}`, fmt.Sprintf(`{"query_id":%d,"reward":1}`, asked.QueryID)} {
		if l := e.teach("pets", again); !l.Duplicate || len(l.Trained) != 0 || l.QueryID != asked.QueryID {
			t.Errorf("%s: %+v", again, l)
		}
	}
	both := fmt.Sprintf(`{"feedback_batch":[%s,%s]}`, byID, byID)
	if l := e.teach("pets", both); !l.Feedback[0].Duplicate || !l.Feedback[1].Duplicate {
		t.Errorf("%+v", l)
	}
	if _, is := in.stored(t, a, "ann"); is != was {
		t.Error("ann's state has changed")
	}
	if _, is := in.stored(t, a, ""); is != wasOfApp {
		t.Error("the app's state has changed")
	}
	if n := e.value(`topsail_feedback_total{app="pets",result="duplicate"}`); n != 5 {
		t.Errorf("%v duplicates are counted, want 5", n)
	}

	// Twice in one batch, of an answer that has had none.
	asked = e.wants("pets", `{"input":[2],"uid":"ann"}`, "dog")
	byID = fmt.Sprintf(`{"query_id":%d,"label":"cat"}`, asked.QueryID)
	l := e.teach("pets", fmt.Sprintf(`{"feedback_batch":[%s,%s]}`, byID, byID))
	if l.Feedback[0].Duplicate == l.Feedback[1].Duplicate {
		t.Errorf("one of two is a duplicate: %+v", l)
	}
	if s, _ := e.explain(in, "pets", "ann"); s.Steps != 2 {
		t.Errorf("ann's state has %v steps, want 2", s.Steps)
	}
}

func TestBadFeedbackChangesNothing(t *testing.T) {
	h, a := pets(t)
	h.model("n", tells(serving.Number(1)))
	numbers := h.app("numbers", ample, serving.PolicySpec{Kind: serving.PolicyEpsilonGreedy, Loss: serving.LossAbsolute}, "n")
	e, in := h.learner()
	asked := e.wants("pets", `{"input":[1],"uid":"ann"}`, "cat")
	id := asked.QueryID
	e.teach("pets", `{"input":[5],"uid":"ann","label":"cat"}`)
	e.teach("numbers", `{"input":[5],"uid":"ann","label":3}`)
	var was []string
	all := func() (list []string) {
		for _, app := range []*serving.App{a, numbers} {
			for _, user := range []string{"", "ann", "bob", "eve"} {
				text, revision := in.stored(t, app, user)
				list = append(list, fmt.Sprint(text, revision))
			}
		}
		return list
	}
	was = all()
	long := strings.Repeat("x", 10_000)
	for _, tt := range []struct{ app, body, words string }{
		{"pets", fmt.Sprintf(`{"query_id":%d,"label":"dog"}`, id+12345), "query_id"},
		{"pets", `{"query_id":-1,"label":"dog"}`, "query_id"},
		{"pets", `{"query_id":1.5,"label":"dog"}`, "query_id"},
		{"pets", fmt.Sprintf(`{"query_id":%d,"label":"dog"}`, int64(math.MaxInt64)), "query_id"},
		{"numbers", fmt.Sprintf(`{"query_id":%d,"label":1}`, id), "query_id"}, // of another app
		{"pets", fmt.Sprintf(`{"query_id":%d,"uid":"bob","label":"dog"}`, id), "another uid"},
		{"pets", fmt.Sprintf(`{"query_id":%d,"input":[2],"label":"dog"}`, id), "another input"},
		{"pets", `{"input":[1],"uid":"ann","label":[1,2]}`, "label"},
		{"pets", `{"input":[1],"uid":"ann","label":{"is":"cat"}}`, "label"},
		{"pets", `{"input":[1],"uid":"ann","label":null}`, "label"},
		{"numbers", `{"input":[1],"uid":"ann","label":"cat"}`, "label"},
		{"numbers", `{"input":[1],"uid":"ann","label":true}`, "label"},
		{"numbers", `{"input":[1],"uid":"ann","label":1e999}`, ""},
		{"pets", fmt.Sprintf(`{"input":[1],"uid":%q,"label":"dog"}`, long), "uid"},
		{"pets", fmt.Sprintf(`{"input":[1],"context":%q,"label":"dog"}`, long), "context"},
		{"pets", `{"input":[1],"uid":"ann","reward":NaN}`, ""},
		{"pets", `{"input":[1],"uid":"ann","reward":"NaN"}`, "reward"},
		{"pets", `{"input":[1],"uid":"ann","reward":1.5}`, "reward"},
		{"pets", `{"input":[1],"uid":"ann","reward":-0.5}`, "reward"},
		{"pets", `{"input":[1],"uid":"ann","reward":1,"label":"dog"}`, "both"},
		{"pets", `{"input":[1],"uid":"ann"}`, "the body needs the key"},
		{"pets", `{"uid":"ann","label":"dog"}`, "the body needs the key"},
		{"pets", `{"input":"text","uid":"ann","label":"dog"}`, "input"},
		{"pets", `{"input":[1],"uid":"ann","label":"dog"`, ""},
		{"pets", `{"feedback_batch":[{"input":[1],"uid":"bob","label":"dog"},{"input":[1],"uid":"eve","reward":2}]}`, "feedback_batch[1]"},
		{"pets", `{"feedback_batch":[{"input":[1],"uid":"bob","label":"dog"},{"query_id":99,"label":"dog"}]}`, "feedback_batch[1]"},
		{"pets", `{"feedback_batch":[{"input":[1],"uid":"bob","label":"dog"},{"input":[1],"uid":"eve","label":[1]}]}`, "feedback_batch[1]"},
	} {
		e.refuses(tt.app, tt.body, 400, tt.words)
	}
	if status, text, err := e.send("pets/predict", fmt.Sprintf(`{"input":[1],"uid":%q}`, long), "*/*"); err != nil || status != 400 {
		t.Errorf("a query with a long uid: %d %s %v", status, text, err)
	}
	if status, text, err := e.send("nobody/update", `{"input":[1],"label":1}`, "application/json"); err != nil || status != 404 {
		t.Errorf("an unknown app: %d %s %v", status, text, err)
	}
	for i, is := range all() {
		if is != was[i] {
			t.Errorf("state %d is %s, and was %s", i, is, was[i])
		}
	}
	if l := e.teach("pets", fmt.Sprintf(`{"query_id":%d,"label":"dog"}`, id)); l.Duplicate {
		t.Error("the record took refused feedback for its own")
	}
}
