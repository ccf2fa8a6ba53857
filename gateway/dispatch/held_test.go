package dispatch

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/topsail-serving/topsail/gateway/cache"
	"github.com/topsail-serving/topsail/serving"
)

// asked is a question of an app.
func asked(app string, weight float64, until int) *Call {
	return &Call{Class: serving.Class{App: app, Weight: weight}, until: time.Unix(int64(until), 0)}
}

// send takes out the question that goes next.
func (h *held) send() *Call {
	c := h.first().calls[0]
	h.charge(c)
	h.remove(c)
	return c
}

// Of apps that have questions none gets ahead of its share by more than one, and those of each go by deadline.
func TestHeldQuestionsGoByShares(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var h held
		weights := rapid.SliceOfN(rapid.Float64Range(0.1, 10), 2, 5).Draw(t, "weights")
		const each = 40
		for i, w := range weights {
			for range each {
				h.push(asked(fmt.Sprint(i), w, rapid.IntRange(0, 50).Draw(t, "until")))
			}
		}
		sent := make([]float64, len(weights))
		latest := map[string]time.Time{}
		for !slices.ContainsFunc(sent, func(n float64) bool { return n == each }) {
			c := h.send()
			if c.until.Before(latest[c.Class.App]) {
				t.Fatal("a question goes after one of its app that has more time")
			}
			latest[c.Class.App] = c.until
			sent[c.Class.App[0]-'0']++
			for i, w := range weights {
				for j, v := range weights {
					if sent[i]/w-sent[j]/v > 1/w+1/v+1e-9 {
						t.Fatalf("sent %v of apps with the weights %v", sent, weights)
					}
				}
			}
		}
		if n := len(h.all()); n != h.calls || n != len(weights)*each-int(sum(sent)) {
			t.Fatalf("%d are held, counted as %d", n, h.calls)
		}
	})
}

func sum(list []float64) (total float64) {
	for _, x := range list {
		total += x
	}
	return total
}

// An app that has no question for a while is owed nothing for that.
func TestAnAppThatComesLaterIsOwedNothing(t *testing.T) {
	var h held
	for range 100 {
		h.push(asked("first", 1, 1))
	}
	for range 50 {
		h.send()
	}
	for range 50 {
		h.push(asked("second", 1, 1))
	}
	sent := map[string]int{}
	for range 40 {
		sent[h.send().Class.App]++
	}
	if sent["second"] < 19 || sent["second"] > 21 {
		t.Errorf("sent %v", sent)
	}
}

// Where one app fills the room, others get their share of it, and what made way ends.
func TestHeldQuestionsMakeWay(t *testing.T) {
	v := unserved()
	v.d.Limits = Limits{Questions: 200, Bytes: 1 << 30} // of which one version may have half
	answers := cache.New(0)
	ask := func(app string) *Call {
		c := newCall(v, answers, time.Now().Add(time.Minute))
		c.Class = serving.Class{App: app, Weight: 1}
		v.Ask(c, time.Now())
		return c
	}
	var noisy, quiet []*Call
	for range 150 {
		noisy = append(noisy, ask("noisy"))
	}
	for range 60 {
		quiet = append(quiet, ask("quiet"))
	}
	waits := func(calls []*Call) (n int) {
		for _, c := range calls {
			switch _, failure, landed := c.Flight.Result(); {
			case !landed:
				n++
			case failure == nil || failure.Cause != serving.NoReplica:
				t.Errorf("one ended with %v", failure)
			}
		}
		return n
	}
	if n, m := waits(noisy), waits(quiet); n != 50 || m != 50 || v.d.Queued() != 100 {
		t.Errorf("of a noisy app %d are held, of one that came later %d; %d in all", n, m, v.d.Queued())
	}
	v.giveUp(NoReplica)
	if waits(noisy)+waits(quiet) != 0 || v.d.Queued() != 0 || v.d.QueuedBytes() != 0 {
		t.Errorf("%d are held", v.d.Queued())
	}
}

// Held questions go by priority, and those of the lowest make way.
func TestHeldQuestionsGoByPriority(t *testing.T) {
	var h held
	ask := func(app string, priority, until int) *Call {
		c := asked(app, 1, until)
		c.Class.Priority = priority
		return c
	}
	for i := range 10 {
		h.push(ask("a", 2, i))
		h.push(ask("b", 1, 100+i))
	}
	if c := h.displaced(ask("b", 3, 0)); c != nil {
		t.Errorf("one of priority %d makes way for one of priority 3", c.Class.Priority)
	}
	for _, priority := range []int{0, 1} {
		if c := h.displaced(ask("c", priority, 0)); c == nil || c.Class.Priority != 2 {
			t.Errorf("%+v makes way for one of priority %d, want one of priority 2", c, priority)
		}
	}
	h.push(ask("c", 0, 1000))
	for i, want := range []int{0, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 2} {
		if c := h.send(); c.Class.Priority != want {
			t.Errorf("question %d has priority %d, want %d", i, c.Class.Priority, want)
		}
	}
}
