package httpapi

import (
	"sync"

	"github.com/topsail-serving/topsail/internal/obs"
)

// reason is why a request was refused before anybody was asked.
type reason int

const (
	noKey reason = iota
	wrongKey
	forbidden
	limited
	memory
	busy
	reasons // how many there are
)

var reasonNames = [reasons]string{"no_key", "wrong_key", "forbidden", "limit", "memory", "busy"}

// refusedCounters are those of one app, by reason. They begin with the first refusal.
type refusedCounters func() [reasons]obs.Counter

// refused counts what was refused. Only apps that there are have series of their own,
// since clients can make up names.
type refused struct{ total *obs.CounterVec }

func newRefused(r *obs.Registry) refused {
	return refused{r.Counters("topsail_gateway_refused_total",
		"Requests that were refused: no_key, wrong_key (unknown or expired), forbidden (a key that is not for this), limit, memory (max_inflight_bytes are taken), or busy (too many large bodies were being read).", "app", "reason")}
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
