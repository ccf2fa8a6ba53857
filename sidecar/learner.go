package sidecar

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/topsail-serving/topsail/rpc"
)

const (
	maxFeedbackWaiting = 4 << 20 // bytes of feedback for one container
	// Feedback goes out in parts with pauses between them, so that a batch never has
	// much of it before it on the connection.
	feedbackPart  = 32 << 10 // bytes
	feedbackPause = time.Millisecond
)

// learners are the containers of one pool that take feedback: those of version 2.
type learners struct {
	mu  sync.Mutex // guards the following, and what waits for each learner
	all []*learner
}

// learner is one container with the feedback that waits to be sent to it.
type learner struct {
	of      *learners
	send    func(...rpc.Feedback) error
	metrics *poolMetrics
	wake    chan struct{} // of capacity 1: something waits

	waiting []rpc.Feedback
	bytes   int // of waiting
}

// join adds a container. Its run takes it out again.
func (ls *learners) join(send func(...rpc.Feedback) error, metrics *poolMetrics) *learner {
	l := &learner{of: ls, send: send, metrics: metrics, wake: make(chan struct{}, 1)}
	ls.mu.Lock()
	defer ls.mu.Unlock()
	ls.all = append(ls.all, l)
	return l
}

// add queues feedback for every learner, and says whether there is any.
func (ls *learners) add(v rpc.Feedback) bool {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	for _, l := range ls.all {
		l.add(v)
	}
	return len(ls.all) > 0
}

// add drops the feedback when too much waits: the container does not read, or there
// is more than the pauses let through.
func (l *learner) add(v rpc.Feedback) {
	if l.bytes+feedbackBytes(&v) > maxFeedbackWaiting {
		l.metrics.feedbackDropped.Inc()
		return
	}
	l.waiting = append(l.waiting, v)
	l.bytes += feedbackBytes(&v)
	select {
	case l.wake <- struct{}{}:
	default:
	}
}

// feedbackBytes is about what an entry takes in memory.
func feedbackBytes(v *rpc.Feedback) int { return 200 + v.Size() }

// run sends what waits until ctx ends.
func (l *learner) run(ctx context.Context) {
	defer l.leave()
	for {
		select {
		case <-l.wake:
			l.forward(ctx)
		case <-ctx.Done():
			return
		}
	}
}

// forward sends until nothing waits. A part that has no room on the connection is
// tried again.
func (l *learner) forward(ctx context.Context) {
	pause := time.NewTicker(feedbackPause)
	defer pause.Stop()
	for part := l.take(); len(part) > 0; {
		if err := l.send(part...); !errors.Is(err, rpc.ErrBacklog) {
			l.count(part, err)
			part = l.take()
		}
		select {
		case <-pause.C:
		case <-ctx.Done():
			l.metrics.feedbackDropped.Add(float64(len(part)))
			return
		}
	}
}

func (l *learner) count(part []rpc.Feedback, err error) {
	to := l.metrics.feedbackForwarded
	if err != nil {
		to = l.metrics.feedbackDropped
	}
	to.Add(float64(len(part)))
}

// take takes the next part, of at least one entry, unless nothing waits.
func (l *learner) take() []rpc.Feedback {
	l.of.mu.Lock()
	defer l.of.mu.Unlock()
	n, bytes := 0, 0
	for n < len(l.waiting) && (n == 0 || bytes+feedbackBytes(&l.waiting[n]) <= feedbackPart) {
		bytes += feedbackBytes(&l.waiting[n])
		n++
	}
	part := l.waiting[:n:n]
	l.waiting, l.bytes = l.waiting[n:], l.bytes-bytes
	if len(l.waiting) == 0 {
		l.waiting = nil // lets go of the array
	}
	return part
}

// leave takes the learner out; what waits for it is dropped.
func (l *learner) leave() {
	l.of.mu.Lock()
	defer l.of.mu.Unlock()
	l.of.all = slices.DeleteFunc(l.of.all, func(other *learner) bool { return other == l })
	l.metrics.feedbackDropped.Add(float64(len(l.waiting)))
}
