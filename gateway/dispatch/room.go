package dispatch

import "sync/atomic"

const (
	maxQueued      = 16384 // questions
	maxQueuedBytes = 64 << 20
	// maxQueuedShare is the part of the limits that one version may take, so that those
	// of a version that never comes leave room for others.
	maxQueuedShare = 2
	// queuedOverhead is the memory that a queued question needs in addition to its input.
	queuedOverhead = 512
)

// Limits bound the questions that one gateway queues for cold starts.
type Limits struct{ Questions, Bytes int64 }

// room is what the questions take.
type room struct{ questions, bytes atomic.Int64 }

// enter takes room for a question of so many bytes, if there is some in addition to those that its
// version has queued.
func (r *room) enter(most Limits, version *held, size int64) bool {
	if int64(version.calls) >= most.Questions/maxQueuedShare || version.bytes+size > most.Bytes/maxQueuedShare {
		return false
	}
	if r.questions.Add(1) > most.Questions || r.bytes.Add(size) > most.Bytes {
		r.leave(size)
		return false
	}
	return true
}

func (r *room) leave(size int64) {
	r.questions.Add(-1)
	r.bytes.Add(-size)
}

// size is the memory that the call needs while it is held.
func (c *Call) size() int64 {
	return queuedOverhead + int64(len(c.Input.Data)+len(c.User)+len(c.Context))
}
