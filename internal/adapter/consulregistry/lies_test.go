package consulregistry

import (
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/topsail-serving/topsail/serving"
	"github.com/topsail-serving/topsail/test/contract"
)

// TestFakeResolverContract has the suite run on a Consul in memory; TestResolverContract does on a real one.
func TestFakeResolverContract(t *testing.T) {
	contract.ResolverInBubbles(t, func(t *testing.T) contract.Replicas { return newFake(t, Config{Hold: time.Second}) })
}

// TestLies: a lie that is told once, or often but not with the leader's word, takes nothing from the list.
func TestLies(t *testing.T) {
	const later = "999999999"
	for _, test := range []struct {
		name  string
		times int
		lie   http.HandlerFunc
	}{
		{"an empty list once", 1, empty(later, "true", "0", "false")},
		{"an empty list with an index of the past", 1, empty("1", "true", "0", "false")},
		{"empty lists without a leader", 4, empty(later, "false", "0", "false")},
		{"empty lists of long ago", 4, empty(later, "true", "60000", "false")},
		{"lists that the token's rights have emptied", 4, empty(later, "true", "0", "true")},
		{"null", 1, answered(later, "true", "0", "false", "null")},
		{"half of an answer", 4, answered(later, "true", "0", "false", `[{"Service": {"ID": "r1"`)},
		{"no index", 4, answered("", "true", "0", "false", "[]")},
		{"errors", 4, fails},
		{"no JSON", 4, answered(later, "true", "0", "false", "<html>")},
		{"no answer", 4, hangs},
		{"a connection that is closed", 4, func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := newFake(t, Config{})
				all := numbered("r", 3)
				f.register(all...)
				w := watching(t, f.Registry)
				w.until(all...)
				f.times(test.times, test.lie)
				f.register("r9")
				lists := w.until(append(all, "r9")...)
				if stays(t, lists, all...); len(lists) > 3 {
					t.Errorf("got lists %v, want 3 at most", lists)
				}
			})
		})
	}
}

// TestDataIsLost: while Consul does not answer the list stays. When it comes back with nothing, what is not
// registered again leaves the list after the hold, to the second.
func TestDataIsLost(t *testing.T) {
	const hold = 20 * time.Second
	for name, lie := range map[string]http.HandlerFunc{"errors": fails, "no answer": hangs} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := newFake(t, Config{Hold: hold})
				all := numbered("r", 5)
				f.register(all...)
				w := watching(t, f.Registry)
				w.until(all...)
				f.tell(lie)
				time.Sleep(time.Hour)
				if age := time.Since(f.LastAnswer()); age != time.Hour {
					t.Errorf("the last answer was %v ago, want an hour", age)
				}
				asked := len(f.questions())
				f.forget()
				f.tell(nil)
				f.register("new")
				w.until("new", "r0", "r1", "r2", "r3", "r4")
				heard := f.LastAnswer()
				f.register("r1", "r3", "r4")
				stays(t, w.until("new", "r1", "r3", "r4"), "r1", "r3", "r4")
				if got := time.Since(heard); got != hold {
					t.Errorf("what is missing is gone after %v, want %v", got, hold)
				}
				for _, q := range f.questions()[asked+1:] {
					if q.mode != "consistent" && q.at.Before(heard.Add(hold)) {
						t.Errorf("a loss is confirmed by a %s read", q.mode)
					}
				}
			})
		})
	}
}

// TestNoAnswer: a question that gets no answer ends when Consul would have answered, and the next one begins afresh.
func TestNoAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake(t, Config{})
		f.register("a")
		watching(t, f.Registry)
		time.Sleep(time.Second)
		before := len(f.questions())
		f.tell(hangs)
		time.Sleep(time.Minute)
		asked := f.questions()[before-1:]
		if len(asked) < 4 {
			t.Fatalf("%d questions in a minute, want 4 or more", len(asked))
		}
		for i, limit := range []time.Duration{blockFor + blockFor/16 + blockGrace, askTimeout, askTimeout} {
			next := asked[i+1]
			if got, most := next.at.Sub(asked[i].at), limit+2*time.Second; got < limit || got > most || next.index != "" {
				t.Errorf("question %d with index %q comes after %v, want none, and %v to %v", i+1, next.index, got, limit, most)
			}
		}
	})
}

// TestBlockingQuery: the first question is for the leader, the next wait from the
// index of the last answer, one that went back begins anew, and 0 counts as 1.
func TestBlockingQuery(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake(t, Config{})
		answers := []string{"7", "9", "9", "3", "4", "0", "5"}
		var n atomic.Int64
		f.tell(func(w http.ResponseWriter, r *http.Request) {
			if i := int(n.Add(1)); i <= len(answers) {
				empty(answers[i-1], "true", "0", "false")(w, r)
				return
			}
			hangs(w, r)
		})
		began := time.Now()
		watching(t, f.Registry)
		time.Sleep(time.Second)
		var got []string
		for i, q := range f.questions() {
			got = append(got, q.mode+" "+q.index)
			if at := q.at.Sub(began); at != time.Duration(i)*interval {
				t.Errorf("question %d comes after %v, want %v", i, at, time.Duration(i)*interval)
			}
		}
		if want := strings.Split("consistent |stale 7|stale 9|stale 9|stale |stale 4|stale |stale 5", "|"); !slices.Equal(got, want) {
			t.Errorf("asked %q\nwant  %q", got, want)
		}
	})
}

// TestTokenOfEndpoints: a token that is new is on the list within a second.
func TestTokenOfEndpoints(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var token atomic.Value
		token.Store("one")
		f := newFake(t, Config{Token: func() []byte { return []byte(token.Load().(string)) }})
		f.register("a", "b")
		w := watching(t, f.Registry)
		w.until("a", "b")
		token.Store("two")
		time.Sleep(time.Second)
		synctest.Wait()
		w.mu.Lock()
		defer w.mu.Unlock()
		if len(w.lists) != 2 || !slices.EqualFunc(w.last, []string{"two", "two"}, func(e serving.Endpoint, want string) bool { return string(e.Token) == want }) {
			t.Errorf("got %d lists, the last %+v, want 2, with the new token", len(w.lists), w.last)
		}
	})
}
