//go:build system

package e2e

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/topsail-serving/topsail/serving"
)

// What was learned before a gateway starts is known after its first queries.
func TestWhatWasLearnedSurvivesARestart(t *testing.T) {
	t.Run("in a file", func(t *testing.T) {
		dir := t.TempDir()
		first := onDisk(t, dir)
		survives(t, first.memory, func() memory { first.close(); return onDisk(t, dir).memory })
	})
	t.Run("in redis", func(t *testing.T) {
		server := startRedis(t)
		survives(t, inRedis(t, server), func() memory {
			server.Kill()
			if err := server.Start(t.Context()); err != nil {
				t.Fatal(err)
			}
			return inRedis(t, server)
		})
	})
}

func survives(t *testing.T, before memory, restart func() memory) {
	h, a := pets(t)
	e := h.gateway("first", before)
	e.wants("pets", `{"input":[1],"uid":"ann"}`, "cat")
	for i := range 5 {
		e.teach("pets", fmt.Sprintf(`{"input":[%d],"uid":"ann","label":"dog"}`, i))
	}
	e.wants("pets", `{"input":[1],"uid":"ann"}`, "dog")
	was, _ := before.stored(t, a, "ann")
	e.stop()
	after := restart()
	e = h.gateway("second", after)
	if is, _ := after.stored(t, a, "ann"); is != was {
		t.Errorf("the state is %s, and was %s", is, was)
	}
	eventually(t, func() bool { // the first query does not wait for the store
		ann, bob := e.ask("pets", `{"input":[1],"uid":"ann"}`), e.ask("pets", `{"input":[1],"uid":"bob"}`)
		return ann.says() == "dog" && bob.says() == "dog" // who begins with what the app knows
	})
}

// Without Redis queries are answered and feedback is refused, so that its sender knows.
func TestFeedbackIsRefusedWhileRedisIsAway(t *testing.T) {
	server := startRedis(t)
	in := inRedis(t, server)
	h, a := pets(t)
	e := h.gateway("edge", in)
	asked := e.wants("pets", `{"input":[1],"uid":"ann"}`, "cat")
	for i := range 5 {
		e.teach("pets", fmt.Sprintf(`{"input":[%d],"uid":"ann","label":"dog"}`, i))
	}
	was, _ := in.stored(t, a, "ann")

	server.Kill()
	for _, body := range []string{
		fmt.Sprintf(`{"query_id":%d,"label":"dog"}`, asked.QueryID),
		`{"input":[77],"uid":"ann","label":"dog"}`,
		`{"feedback_batch":[{"input":[78],"uid":"ann","reward":0},{"input":[79],"uid":"ann","label":"dog"}]}`,
	} {
		e.refuses("pets", body, 503, "send it again")
	}
	for i := range 20 {
		e.wants("pets", fmt.Sprintf(`{"input":[%d],"uid":"ann"}`, 100+i), "dog") // what it knew
		e.wants("pets", fmt.Sprintf(`{"input":[%d],"uid":"new%d"}`, i, i), "dog")
	}

	if err := server.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	eventually(t, func() bool { // the store looks for Redis about once a second
		_, _, err := in.states.LoadState(t.Context(), stateKey(a, "ann"))
		return err == nil
	})
	if is, _ := in.stored(t, a, "ann"); is != was {
		t.Errorf("the state is %s, and was %s", is, was)
	}
	l := e.teach("pets", `{"input":[77],"uid":"ann","label":"cat"}`)
	if l.Duplicate || len(l.Trained) != 2 {
		t.Errorf("learned %+v, want the states of ann and of the app", l)
	}
	if s, _ := e.explain(in, "pets", "ann"); s.Steps != 6 {
		t.Errorf("ann's state has %v steps, want 6", s.Steps)
	}
}

// A Redis that is silent delays feedback, for a time, and no query.
func TestASilentRedisDelaysNoQuery(t *testing.T) {
	server := startRedis(t)
	h, _ := pets(t)
	e := h.gateway("edge", inRedis(t, server))
	asked := e.wants("pets", `{"input":[1],"uid":"ann"}`, "cat")
	for i := range 5 {
		e.teach("pets", fmt.Sprintf(`{"input":[%d],"uid":"ann","label":"dog"}`, i))
	}
	server.Freeze()
	defer server.Thaw()
	done := make(chan struct{})
	go func() {
		defer close(done)
		status, text, err := e.send("pets/update", fmt.Sprintf(`{"query_id":%d,"label":"dog"}`, asked.QueryID+1<<20), "*/*")
		if err != nil || status != 503 {
			t.Errorf("feedback: %d %s %v, want 503", status, text, err)
		}
	}()
	for i := 0; ; i++ {
		select {
		case <-done:
			return
		default:
		}
		a := e.wants("pets", fmt.Sprintf(`{"input":[%d],"uid":"ann"}`, i), "dog")
		b := e.wants("pets", fmt.Sprintf(`{"input":[%d],"uid":"new%d"}`, i, i), "dog")
		if took := max(a.took, b.took); took > 2*time.Second {
			t.Fatalf("a query took %v", took)
		}
		pause(t.Context(), 10*time.Millisecond)
	}
}

// A state that is none is set aside under another key, and the app goes on from a fresh one.
func TestACorruptStateIsSetAside(t *testing.T) {
	server := startRedis(t)
	in := inRedis(t, server)
	h := newHouse(t)
	h.model("a", says("cat"))
	h.model("b", says("dog"))
	a := h.app("pets", ample, serving.PolicySpec{Kind: serving.PolicyExp4, Scope: serving.ScopeApp}, "a", "b")
	e := h.gateway("edge", in)
	for i := range 5 {
		e.teach("pets", fmt.Sprintf(`{"input":[%d],"label":"dog"}`, i))
	}
	e.wants("pets", `{"input":[1]}`, "dog")
	for i, corrupt := range []string{"\xff no state", `{"kind":"exp3","format":1,"models":[]}`, `{"kind":"exp4","format":1,"models":[{"model":"b"},{"model":"a"}]}`} {
		_, revision := in.stored(t, a, "")
		if _, err := in.states.SwapState(t.Context(), stateKey(a, ""), revision, []byte(corrupt)); err != nil {
			t.Fatal(err)
		}
		eventually(t, func() bool { return e.ask("pets", `{"input":[1]}`).says() == "cat" }) // as before any feedback
		if list := keys(t, server, ":aside:"); len(list) != i+1 {
			t.Fatalf("set aside: %v, want %d", list, i+1)
		}
		if n := e.value("topsail_selection_state_corrupt_total"); n != float64(i+1) {
			t.Errorf("the metric says %v, want %d", n, i+1)
		}
		e.teach("pets", fmt.Sprintf(`{"input":[%d],"label":"dog"}`, 10+i))
		e.teach("pets", fmt.Sprintf(`{"input":[%d],"label":"dog"}`, 20+i))
		if s, _ := e.explain(in, "pets", ""); s.Steps != 2 {
			t.Errorf("the state has %v steps, want the 2 since", s.Steps)
		}
		e.wants("pets", `{"input":[1]}`, "dog")
	}
	if n := strings.Count(e.log.String(), "level=ERROR"); n != 3 || !strings.Contains(e.log.String(), "corrupt") {
		t.Errorf("%d errors are logged, want 3: %s", n, e.log)
	}
}
