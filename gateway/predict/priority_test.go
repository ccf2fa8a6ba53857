package predict

import (
	"testing"
	"time"

	"github.com/topsail-serving/topsail/rpc"
	"github.com/topsail-serving/topsail/serving"
)

// A query is asked with the priority of its app, or with its own if that is lower; it is in the explanation and in the
// metrics.
func TestThePriorityOfAQuery(t *testing.T) {
	for _, c := range []struct{ app, query, want int }{{0, 0, 0}, {1, 0, 1}, {1, 3, 3}, {2, 1, 2}} {
		bubble(t, func(t *rig) {
			f := t.replica("a", echoes(time.Millisecond), m1)
			t.serves(func(app *serving.App) { app.Priority, app.MinShare = c.app, 0.25 }, m1)
			q := newQuery(7)
			q.Priority, q.Explain = c.query, true
			p, _ := t.predict(q)
			t.wantOutput(p, 7)
			want := serving.Class{App: "app", Priority: c.want, Weight: 1, MinShare: 0.25}
			if asked := f.questions(); len(asked) != 1 || asked[0].class != want || p.Explained.Priority != c.want {
				t.Errorf("%+v: asked %+v, explained as %d", c, asked, p.Explained.Priority)
			}
			for result, n := range map[string]float64{"prediction": 1, "default": 0} {
				name := `topsail_gateway_priority_answers_total{app="app",priority="` + string(rune('0'+c.want)) + `",result="` + result + `"}`
				if got := t.metric(name); got != n {
					t.Errorf("%s is %v, want %v", name, got, n)
				}
			}
		})
	}
}

// A query does not wait for an equal one of a lower priority.
func TestAQueryDoesNotWaitForALowerPriority(t *testing.T) {
	bubble(t, func(t *rig) {
		f := t.replica("a", func(q arrival) (a rpc.Answer, after time.Duration) {
			return number(q.x), time.Duration(1+q.class.Priority) * 10 * time.Millisecond
		}, m1)
		t.serves(nil, m1)
		low := newQuery(7)
		low.Priority = 2
		go t.predict(low)
		time.Sleep(time.Millisecond)
		if _, took := t.predict(newQuery(7)); took != 10*time.Millisecond || len(f.questions()) != 2 {
			t.Errorf("it took %v, after %d questions", took, len(f.questions()))
		}
		time.Sleep(time.Second)
	})
}
