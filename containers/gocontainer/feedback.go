package gocontainer

import (
	"slices"
	"sync"

	"github.com/topsail-serving/topsail/rpc"
)

const (
	maxFeedbackBytes = 4 << 20 // of what waits
	maxCorrected     = 256     // entries of one call, so that no batch waits for long
)

// feedbackQueue holds feedback that waits for the model.
type feedbackQueue struct {
	wake chan struct{} // of capacity 1: something waits

	mu      sync.Mutex       // guards the following
	waiting []queuedFeedback // in order of arrival
	bytes   int              // of waiting
}

type queuedFeedback struct {
	Feedback
	user  string
	bytes int // about what it takes in memory
}

func newFeedbackQueue() feedbackQueue { return feedbackQueue{wake: make(chan struct{}, 1)} }

// add copies what it takes in. Feedback that is not one input and one label is left
// out, and so is what comes while too much waits.
func (q *feedbackQueue) add(list []rpc.Feedback) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for i := range list {
		if l, ok := newQueuedFeedback(&list[i]); ok && q.bytes+l.bytes <= maxFeedbackBytes {
			q.waiting = append(q.waiting, l)
			q.bytes += l.bytes
		}
	}
	q.signal()
}

// signal wakes the learner, if something waits.
func (q *feedbackQueue) signal() {
	if len(q.waiting) == 0 {
		return
	}
	select {
	case q.wake <- struct{}{}:
	default:
	}
}

// next takes out what the user that waits longest has sent, up to a bound.
func (q *feedbackQueue) next() (user string, list []Feedback) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.waiting) == 0 {
		return "", nil
	}
	user = q.waiting[0].user
	q.waiting = slices.DeleteFunc(q.waiting, func(l queuedFeedback) bool {
		if l.user != user || len(list) == maxCorrected {
			return false
		}
		list = append(list, l.Feedback)
		q.bytes -= l.bytes
		return true
	})
	q.signal()
	return user, list
}

func newQueuedFeedback(v *rpc.Feedback) (queuedFeedback, bool) {
	input, err := rpc.ParsePayload(slices.Clone(v.Input))
	if err != nil || len(input) != 1 {
		return queuedFeedback{}, false
	}
	label, err := rpc.ParsePayload(slices.Clone(v.Label))
	if err != nil || len(label) != 1 {
		return queuedFeedback{}, false
	}
	return queuedFeedback{Feedback{input[0], label[0]}, string(v.User), 200 + v.Size()}, true
}
