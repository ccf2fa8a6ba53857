package stream

import (
	"context"
	"sync"
)

// pace bounds how many records are asked at a time: as many as the replicas answer in
// time. It doubles until some answers are missed, then grows by one for as many answers
// as it is large, and shrinks by a tenth when some are missed again.
type pace struct {
	most, least float64
	room        chan struct{} // has a token when somebody who waits may look again

	mu      sync.Mutex
	limit   float64
	out     int    // are asked now
	entered uint64 // so far
	cut     uint64 // entered when it was cut the last time; 0: never
}

const (
	paceFirst = 16 // and the least
	paceCut   = 0.9
)

func newPace(most int) *pace {
	least := float64(min(paceFirst, most))
	return &pace{most: float64(most), least: least, limit: least, room: make(chan struct{}, 1)}
}

// enter waits for room and returns the number of the one who entered.
func (p *pace) enter(ctx context.Context) (number uint64, err error) {
	for {
		if number, ok := p.tryEnter(); ok {
			return number, nil
		}
		select {
		case <-p.room:
		case <-ctx.Done():
			return 0, context.Cause(ctx)
		}
	}
}

func (p *pace) tryEnter() (number uint64, ok bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if float64(p.out) >= p.limit {
		return 0, false
	}
	p.out++
	p.entered++
	p.signal() // there may be room for the next one
	return p.entered, true
}

// leave makes room, and takes into account whether the answer was missed because more is
// asked than can be answered. Those who entered before a cut are of the old pace.
func (p *pace) leave(number uint64, missed bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	used := float64(p.out) >= p.limit/2 // else it shows nothing that answers come in time
	p.out--
	switch {
	case missed && number > p.cut:
		p.limit = max(p.limit*paceCut, p.least)
		p.cut = p.entered
	case missed || !used:
	case p.cut == 0:
		p.limit = min(p.limit+1, p.most)
	default:
		p.limit = min(p.limit+1/p.limit, p.most)
	}
	p.signal()
}

func (p *pace) signal() {
	if float64(p.out) >= p.limit {
		return
	}
	select {
	case p.room <- struct{}{}:
	default:
	}
}
