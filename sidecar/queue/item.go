package queue

import (
	"time"

	"github.com/topsail-serving/topsail/rpc"
	"github.com/topsail-serving/topsail/serving"
)

// Item is one query on its way through a sidecar. What took it out of the
// queue owns it and must see to it that it is answered.
type Item struct {
	serving.Class
	Deadline time.Time // of the query; zero: none
	Arrived  time.Time
	Ask      rpc.Ask // in memory of its own
	Batch    uint64  // with Index: its name on the asker's connection
	Index    uint32
	From     Asker
	Service  time.Duration    // what the model took for its batch; 0: not known
	Behind   time.Duration    // what those behind this queue take at least of the time until the deadline
	Share    time.Duration    // how much of the time until its deadline is for this queue; 0: all of it
	Again    bool             // it was admitted before, and its worker died
	First    func(rpc.Status) // nil, or called once, before the first answer
	Part     time.Time        // when the last part of its answer was sent; zero: none was
	Cut      bool             // a part was lost: what follows is of no use

	answered bool
}

// Asker gets the answers to the items that came from it.
type Asker interface {
	Answer(*Item, *rpc.Answer)
}

// Answer hands a to the asker. What comes after the last answer is dropped.
func (it *Item) Answer(a *rpc.Answer) {
	if it.answered {
		return
	}
	if first := it.First; first != nil {
		it.First = nil
		first(a.Status)
	}
	it.answered = !a.More
	a.Index = it.Index
	it.From.Answer(it, a)
}

// Refuse answers the item with a failure.
func (it *Item) Refuse(status rpc.Status, message string) {
	it.Answer(&rpc.Answer{Status: status, Message: []byte(message)})
}

// Answered says whether the last answer was given.
func (it *Item) Answered() bool { return it.answered }

// Left is the time until the item must be done here; without a deadline, a long time.
func (it *Item) Left(now time.Time) time.Duration {
	if it.Deadline.IsZero() {
		return noDeadline
	}
	return it.Deadline.Sub(now) - it.Behind
}

// Budget is the time that the item had, when it arrived, for this queue.
func (it *Item) Budget() time.Duration {
	if it.Share > 0 {
		return min(it.Share, it.Left(it.Arrived))
	}
	return it.Left(it.Arrived)
}

const noDeadline = 24 * time.Hour

// order orders items: earliest deadline first, none last. Behind is not part of it: being an
// estimate, it would have queries overtake each other whenever it changes.
func (it *Item) order(other *Item) int {
	switch none, too := it.Deadline.IsZero(), other.Deadline.IsZero(); {
	case none && too:
		return 0
	case none:
		return 1
	case too:
		return -1
	}
	return it.Deadline.Compare(other.Deadline)
}

func (it *Item) bytes() int { return 200 + len(it.Ask.Payload) + len(it.Ask.User) }
