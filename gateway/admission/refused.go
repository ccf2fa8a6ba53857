package admission

import (
	"sync"

	"github.com/topsail-serving/topsail/internal/obs"
)

// Reason is why a request was refused before a model was asked.
type Reason int

const (
	NoKey     Reason = iota
	WrongKey         // unknown, expired or deleted
	Forbidden        // the key is good, but not for this
	Limited          // the limit of a key or an app
	Memory           // max_inflight_bytes is used up
	Busy             // too many large bodies are being read
	reasons          // how many there are
)

var reasonNames = [reasons]string{"no_key", "wrong_key", "forbidden", "limit", "memory", "busy"}

// refusedCounters are those of one app, by reason. They begin with the first refusal.
type refusedCounters func() [reasons]obs.Counter

// refused counts what was refused. Only registered apps have series of their own, since clients
// can make up names.
type refused struct{ total *obs.CounterVec }

func newRefused(r *obs.Registry) refused {
	return refused{r.Counters("topsail_gateway_refused_total",
		"Requests that were refused: no_key, wrong_key (unknown or expired), forbidden (a key without access), limit, memory (max_inflight_bytes is used up), or busy (too many large bodies were being read).", "app", "reason")}
}

func (r refused) of(app string) refusedCounters {
	return sync.OnceValue(func() (counters [reasons]obs.Counter) {
		for i, name := range reasonNames {
			counters[i] = r.total.WithLabelValues(app, name)
		}
		return counters
	})
}

func (r refused) forget(app string) { r.total.DeletePartialMatch(obs.Labels{"app": app}) }
