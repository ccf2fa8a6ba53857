package gocontainer

import (
	"slices"
	"sync"

	"github.com/topsail-serving/topsail/rpc"
)

const (
	maxLessonBytes = 4 << 20 // of what waits
	maxCorrected   = 256     // entries of one call, so that no batch waits for long
)

// lessons are feedback that waits for the model.
type lessons struct {
	wake chan struct{} // of capacity 1: something waits

	mu      sync.Mutex // guards the following
	waiting []lesson   // in order of arrival
	bytes   int        // of waiting
}

type lesson struct {
	Feedback
	user  string
	bytes int // about what it takes in memory
}

func newLessons() lessons { return lessons{wake: make(chan struct{}, 1)} }

// add copies what it takes in. Feedback that is not one input and one label is left
// out, and so is what comes while too much waits.
func (ls *lessons) add(list []rpc.Feedback) {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	for i := range list {
		if l, ok := newLesson(&list[i]); ok && ls.bytes+l.bytes <= maxLessonBytes {
			ls.waiting = append(ls.waiting, l)
			ls.bytes += l.bytes
		}
	}
	ls.ring()
}

// ring wakes the learner, if something waits.
func (ls *lessons) ring() {
	if len(ls.waiting) == 0 {
		return
	}
	select {
	case ls.wake <- struct{}{}:
	default:
	}
}

// next takes out what the user that waits longest has sent, up to a bound.
func (ls *lessons) next() (user string, list []Feedback) {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	if len(ls.waiting) == 0 {
		return "", nil
	}
	user = ls.waiting[0].user
	ls.waiting = slices.DeleteFunc(ls.waiting, func(l lesson) bool {
		if l.user != user || len(list) == maxCorrected {
			return false
		}
		list = append(list, l.Feedback)
		ls.bytes -= l.bytes
		return true
	})
	ls.ring()
	return user, list
}

func newLesson(v *rpc.Feedback) (lesson, bool) {
	input, err := rpc.ParsePayload(slices.Clone(v.Input))
	if err != nil || len(input) != 1 {
		return lesson{}, false
	}
	label, err := rpc.ParsePayload(slices.Clone(v.Label))
	if err != nil || len(label) != 1 {
		return lesson{}, false
	}
	return lesson{Feedback{input[0], label[0]}, string(v.User), 200 + v.Size()}, true
}
