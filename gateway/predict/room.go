package predict

import "sync/atomic"

const (
	maxQueued    = 16384 // questions
	maxHeldBytes = 64 << 20
	// maxHeldShare is the part of the room that one version may take, so that those
	// of a version that never comes leave room for others.
	maxHeldShare = 2
	// heldOverhead is the memory that a held question needs beside its input.
	queuedOverhead = 512
)

// room bounds the questions that one gateway holds.
type room struct {
	maxQuestions, maxBytes int64
	questions, bytes       atomic.Int64
}

// enter takes room for a question of so many bytes, if there is some beside those
// that its version holds already.
func (r *room) enter(version *deadlines, size int64) bool {
	if int64(len(version.calls)) >= r.maxQuestions/maxHeldShare || version.bytes+size > r.maxBytes/maxHeldShare {
		return false
	}
	if r.questions.Add(1) > r.maxQuestions || r.bytes.Add(size) > r.maxBytes {
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
func (c *call) size() int64 { return queuedOverhead + int64(len(c.input.Data)+len(c.user)) }
