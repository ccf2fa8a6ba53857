package route

import (
	"sync"
	"time"

	"github.com/topsail-serving/topsail/rpc"
	"github.com/topsail-serving/topsail/serving"
)

const (
	// maxInFlight bounds what this gateway has in flight at one replica.
	maxInFlight = 8192
	// overdueAfter is how long after its deadline a question is given up. Until
	// then its output is still good for the cache.
	overdueAfter = 30 * time.Second
)

// Receiver gets the answer to a question, or its failure.
type Receiver interface {
	// Answered is called once per question, on a goroutine of the connection: it
	// must not block. The answer's slices are valid until it returns. service is what
	// the model took, 0 where the replica does not say, and now when the answer came.
	Answered(from *Target, a *rpc.Answer, service time.Duration, now time.Time)
	// Part is called for each part of an answer before that, on the same goroutine.
	Part(from *Target, a *rpc.Answer)
}

// question is one input that was sent and not yet answered.
type question struct {
	to       Receiver
	from     *Target
	priority int
	sent     time.Time
	before   float64 // so many were in flight that go before it
	overdue  time.Time
	begun    bool // a part of the answer has come
}

// fail answers the question in the replica's place.
func (q question) fail(why string) {
	q.to.Answered(q.from, &rpc.Answer{Status: rpc.StatusContainer, Message: []byte(why)}, 0, time.Now())
}

// questions are those in flight at one replica, by the batch they went out as.
// What takes one out answers it, so that each is answered once.
type questions struct {
	load *load

	mu   sync.Mutex // guards the following
	last uint64     // batch
	open map[uint64]question
}

// add takes a question in, unless there are too many.
func (qs *questions) add(q question) (batch uint64, ok bool) {
	qs.mu.Lock()
	defer qs.mu.Unlock()
	if len(qs.open) >= maxInFlight {
		return 0, false
	}
	qs.last++
	q.before = qs.load.before(q.priority)
	qs.load.sending(q.sent)
	qs.open[qs.last] = q
	qs.load.ask(q.priority, 1)
	return qs.last, true
}

func (qs *questions) has(batch uint64) bool {
	qs.mu.Lock()
	defer qs.mu.Unlock()
	_, ok := qs.open[batch]
	return ok
}

// part is a question to which a part of the answer has come. first says that it is the first.
func (qs *questions) part(batch uint64, now time.Time) (q question, first, ok bool) {
	qs.mu.Lock()
	defer qs.mu.Unlock()
	q, ok = qs.open[batch]
	if ok {
		first, q.begun = !q.begun, true
		q.overdue = now.Add(serving.MaxSLO + overdueAfter) // by then its query has given it up
		qs.open[batch] = q
	}
	return q, first, ok
}

func (qs *questions) take(batch uint64) (question, bool) {
	qs.mu.Lock()
	defer qs.mu.Unlock()
	q, ok := qs.open[batch]
	if ok {
		delete(qs.open, batch)
		qs.load.ask(q.priority, -1)
	}
	return q, ok
}

// takeIf takes out all questions that which says.
func (qs *questions) takeIf(which func(question) bool) []question {
	qs.mu.Lock()
	defer qs.mu.Unlock()
	var taken []question
	for batch, q := range qs.open {
		if which(q) {
			delete(qs.open, batch)
			qs.load.ask(q.priority, -1)
			taken = append(taken, q)
		}
	}
	return taken
}
