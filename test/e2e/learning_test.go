package e2e

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"reflect"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/topsail-serving/topsail/serving"
	"github.com/topsail-serving/topsail/test/require"
)

// Policies that ask one model for each query come to ask the better one.
func TestBanditsFindTheBetterModel(t *testing.T) {
	for _, kind := range []string{serving.PolicyExp3, serving.PolicyThompson, serving.PolicyUCB1, serving.PolicyEpsilonGreedy, serving.PolicyLinUCB} {
		t.Run(kind, func(t *testing.T) {
			bubble(t, func(s *story) {
				s.deploy("good", says("dog"))
				s.deploy("poor", says("cat"))
				s.app("app", serving.PolicySpec{Kind: kind}, "good", "poor")
				store := s.open(t.TempDir())
				e := s.gateway(store)
				for round := range 20 {
					e.round("app", round, 10)
				}
				dogs := 0
				for round := range 10 {
					dogs += e.round("app", 20+round, 10)
				}
				l := s.learned(store, "app", "")
				if good, poor := l.Models[0].Worth, l.Models[1].Worth; dogs < 70 || good <= poor || l.Steps != 300 {
					t.Errorf("%d of the last 100 queries went to the better model, which is worth %v, and the other %v, after %v steps; want nearly all, and 300 steps", dogs, good, poor, l.Steps)
				}
			})
		})
	}
}

// round asks a batch, gives the feedback that dogs were right, and says how many answers were dogs.
func (e *edge) round(app string, round, each int) (dogs int) {
	e.Helper()
	var inputs, feedback []string
	for i := range each {
		inputs = append(inputs, fmt.Sprintf("[%d,%d]", round, i))
	}
	for _, a := range e.askAll(app, inputs) {
		if a.Output == "dog" {
			dogs++
		}
		feedback = append(feedback, fmt.Sprintf(`{"query_id":%d,"label":"dog"}`, a.QueryID))
	}
	e.teach(app, `{"feedback_batch":[`+strings.Join(feedback, ",")+`]}`)
	return dogs
}

// pets are two models that disagree, and an app that weighs them by feedback.
func (s *story) pets() {
	s.deploy("a", says("cat"))
	s.deploy("b", says("dog"))
	s.app("pets", serving.PolicySpec{Kind: serving.PolicyExp4}, "a", "b")
}

// dogs has ann say five times that the answer is a dog.
func (e *edge) dogs() {
	e.Helper()
	for i := range 5 {
		e.teach("pets", fmt.Sprintf(`{"uid":"ann","input":[%d],"label":"dog"}`, i))
	}
}

// What was learned before a gateway starts is known after its first query, which does not wait for it.
func TestWhatWasLearnedSurvivesARestart(t *testing.T) {
	bubble(t, func(s *story) {
		s.pets()
		dir := s.TempDir()
		store := s.open(dir)
		e := s.gateway(store)
		e.wants("pets", `{"uid":"ann","input":[1]}`, "cat")
		e.dogs()
		e.wants("pets", `{"uid":"ann","input":[1]}`, "dog")
		was := s.learned(store, "pets", "ann")
		e.stop()
		require.NoError(t, store.Store.Close())

		store = s.open(dir)
		e = s.gateway(store)
		if is := s.learned(store, "pets", "ann"); !reflect.DeepEqual(is, was) {
			t.Errorf("the store has %+v, and had %+v", is, was)
		}
		for _, user := range []string{"ann", "bob"} { // bob begins with what the app knows
			e.ask("pets", fmt.Sprintf(`{"uid":%q,"input":[1]}`, user))
			settle()
			e.wants("pets", fmt.Sprintf(`{"uid":%q,"input":[1]}`, user), "dog")
		}
	})
}

// Feedback is learned at whichever gateway it comes, and no other loses it.
func TestAnyGatewayTakesFeedback(t *testing.T) {
	bubble(t, func(s *story) {
		s.pets()
		store := s.open(s.TempDir())
		first, second := s.gateway(store), s.gateway(store)
		for i := range 5 {
			id := first.ask("pets", fmt.Sprintf(`{"uid":"ann","input":[%d]}`, i)).QueryID
			want := learned{QueryID: id, Joined: "record", Trained: []map[string]string{{"user": "ann"}, {}}}
			if l := second.teach("pets", fmt.Sprintf(`{"query_id":%d,"label":"dog"}`, id)); !reflect.DeepEqual(l, want) {
				t.Errorf("the second learned %+v, want %+v", l, want)
			}
			want = learned{QueryID: id, Joined: "record", Duplicate: true, Trained: []map[string]string{}}
			if l := first.teach("pets", fmt.Sprintf(`{"uid":"ann","input":[%d],"label":"dog"}`, i)); !reflect.DeepEqual(l, want) {
				t.Errorf("the first learned %+v, want %+v", l, want)
			}
		}
		settle()
		for _, e := range []*edge{first, second} {
			e.ask("pets", `{"uid":"ann","input":[1]}`)
			settle()
			e.wants("pets", `{"uid":"ann","input":[1]}`, "dog")
		}
		var both sync.WaitGroup
		for _, e := range []*edge{first, second} {
			both.Go(func() {
				for i := range 20 {
					e.teach("pets", fmt.Sprintf(`{"input":[%d],"label":"dog"}`, i))
				}
			})
		}
		both.Wait()
		if ann, all := s.learned(store, "pets", "ann").Steps, s.learned(store, "pets", "").Steps; ann != 5 || all != 5+2*20 {
			t.Errorf("ann's state has %v steps and the app's %v, want 5 and 45", ann, all)
		}
	})
}

// unsteady is a store whose states cannot be reached while it is away.
type unsteady struct {
	store
	away atomic.Bool
}

var errAway = errors.New("away")

func (u *unsteady) LoadState(ctx context.Context, key serving.StateKey) ([]byte, uint64, error) {
	if u.away.Load() {
		return nil, 0, errAway
	}
	return u.store.LoadState(ctx, key)
}

func (u *unsteady) SwapState(ctx context.Context, key serving.StateKey, revision uint64, text []byte) (uint64, error) {
	if u.away.Load() {
		return 0, errAway
	}
	return u.store.SwapState(ctx, key, revision, text)
}

// Without the store queries are answered by what is known, and feedback is refused, so that its sender
// sends it again.
func TestFeedbackIsRefusedWhileTheStoreIsAway(t *testing.T) {
	bubble(t, func(s *story) {
		s.pets()
		store := &unsteady{store: s.open(s.TempDir())}
		e := s.gateway(store)
		id := e.wants("pets", `{"uid":"ann","input":[76]}`, "cat").QueryID
		e.dogs()
		was := s.learned(store, "pets", "ann")

		store.away.Store(true)
		for _, body := range []string{
			fmt.Sprintf(`{"query_id":%d,"label":"dog"}`, id),
			`{"uid":"ann","input":[77],"label":"dog"}`,
			`{"feedback_batch":[{"uid":"ann","input":[78],"reward":0},{"uid":"ann","input":[79],"label":"dog"}]}`,
		} {
			if status, text := e.post("pets/update", body); status != http.StatusServiceUnavailable || !strings.Contains(text, "send it again") {
				t.Errorf("%s: status %d, %s, want 503 and to send it again", body, status, text)
			}
		}
		for i := range 20 {
			e.wants("pets", fmt.Sprintf(`{"uid":"ann","input":[%d]}`, 100+i), "dog")
			e.wants("pets", fmt.Sprintf(`{"uid":"new %d","input":[%d]}`, i, i), "dog")
		}

		store.away.Store(false)
		if is := s.learned(store, "pets", "ann"); !reflect.DeepEqual(is, was) {
			t.Errorf("the store has %+v, and had %+v", is, was)
		}
		if l := e.teach("pets", `{"uid":"ann","input":[77],"label":"dog"}`); l.Duplicate || len(l.Trained) != 2 {
			t.Errorf("learned %+v, want the states of ann and of the app", l)
		}
		if steps := s.learned(store, "pets", "ann").Steps; steps != 6 {
			t.Errorf("ann's state has %v steps, want 6", steps)
		}
	})
}
