package cache

import (
	"sync"
	"time"

	"github.com/topsail-serving/topsail/serving"
)

const (
	// maxUnread is how many bytes of parts wait for a reader. One that falls behind further is cut
	// off: the model does not wait for it.
	maxUnread = 1 << 20
	// maxShared is how many bytes of parts are kept for equal queries that join later.
	maxShared = 1 << 20
	// partOverhead is what a part takes besides its bytes.
	partOverhead = 200
)

// Parts are the parts of an answer that is on its way, for the query that asked and for equal ones
// that joined it.
type Parts struct {
	cancel func() // stops the answer: nothing reads it any more
	kept   int    // bytes up to which all parts are kept, for equal queries that join

	mu      sync.Mutex // guards the following
	list    []*serving.Output
	dropped int // parts that every reader has read, and are kept no longer
	bytes   int // of all that have come
	readers []*Reader
	whole   int // readers that there ever were
}

// Reader reads the parts of an answer, each once. One goroutine uses it.
type Reader struct {
	parts  *Parts
	wake   Waiter
	next   int  // guarded by the parts, as are the following
	unread int  // bytes
	behind bool // it was cut off
}

// Stream makes the flight one whose answer comes in parts, which w is woken for. cancel is called
// when its last reader has left before it landed and no other query waits for the whole.
func (f *Flight) Stream(w Waiter, cancel func()) *Reader {
	p := &Parts{cancel: cancel}
	if f.keep && !f.own {
		p.kept = maxShared
	}
	r := p.read(w)
	f.mu.Lock()
	defer f.mu.Unlock()
	f.parts = p
	return r
}

// Reader reads the parts of a flight that was joined; nil where it has none, or some are kept no
// longer: then the answer comes as a whole.
func (f *Flight) Reader(w Waiter) *Reader {
	f.mu.Lock()
	p := f.parts
	f.mu.Unlock()
	if p == nil {
		return nil
	}
	return p.read(w)
}

func (p *Parts) read(w Waiter) *Reader {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.dropped > 0 {
		return nil
	}
	r := &Reader{parts: p, wake: w, unread: p.bytes}
	p.readers = append(p.readers, r)
	p.whole++
	return r
}

// Part adds a part to the answer.
func (f *Flight) Part(out *serving.Output) {
	f.mu.Lock()
	p := f.parts
	if f.began.IsZero() {
		f.began = time.Now()
	}
	f.mu.Unlock()
	if p == nil {
		return
	}
	size := len(out.JSON) + partOverhead
	p.mu.Lock()
	defer p.mu.Unlock()
	p.list = append(p.list, out)
	p.bytes += size
	for _, r := range p.readers {
		r.unread += size
		r.behind = r.behind || r.unread > maxUnread
		r.wake.Wake()
	}
	p.drop()
}

// drop forgets what all have read, once the answer is too large to be joined or if it cannot be. p.mu is
// held.
func (p *Parts) drop() {
	if p.bytes <= p.kept {
		return
	}
	least := p.dropped + len(p.list)
	for _, r := range p.readers {
		if !r.behind {
			least = min(least, r.next)
		}
	}
	n := least - p.dropped
	clear(p.list[:n])
	if p.dropped = least; n == len(p.list) {
		p.list = p.list[:0]
	} else {
		p.list = p.list[n:]
	}
}

// Next is the next part, or nil if none has come since.
func (r *Reader) Next() *serving.Output {
	p := r.parts
	p.mu.Lock()
	defer p.mu.Unlock()
	if r.behind || r.next == p.dropped+len(p.list) {
		return nil
	}
	out := p.list[r.next-p.dropped]
	r.next++
	r.unread -= len(out.JSON) + partOverhead
	p.drop()
	return out
}

// Behind says whether the reader was cut off because it read too slowly.
func (r *Reader) Behind() bool {
	r.parts.mu.Lock()
	defer r.parts.mu.Unlock()
	return r.behind
}

// Leave ends the reading. The answer is stopped if nothing waits for it any more.
func (f *Flight) Leave(r *Reader) {
	p := r.parts
	p.mu.Lock()
	for i, other := range p.readers {
		if other == r {
			p.readers = append(p.readers[:i], p.readers[i+1:]...)
			break
		}
	}
	last, readers := len(p.readers) == 0, p.whole
	p.drop()
	p.mu.Unlock()
	if last && f.withdraw(readers) {
		p.cancel()
	}
}
