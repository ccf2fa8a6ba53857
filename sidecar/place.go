package sidecar

import (
	"fmt"
	"sync"
)

// place distinguishes the containers of a pool: the lowest number that none of the same stage has,
// so that one that is started again gets the number of the one before.
type place struct {
	stage  string
	number int
}

// String is empty for the first container of a model without stages.
func (p place) String() string {
	switch {
	case p.stage != "":
		return fmt.Sprintf("%s/%d", p.stage, p.number)
	case p.number > 0:
		return fmt.Sprint(p.number)
	}
	return ""
}

// places are those that are taken.
type places struct {
	mu    sync.Mutex
	taken map[place]bool
}

func (ps *places) take(stage string) place {
	ps.mu.Lock()
	defer ps.mu.Unlock()
	if ps.taken == nil {
		ps.taken = map[place]bool{}
	}
	p := place{stage: stage}
	for ps.taken[p] {
		p.number++
	}
	ps.taken[p] = true
	return p
}

func (ps *places) free(p place) {
	ps.mu.Lock()
	defer ps.mu.Unlock()
	delete(ps.taken, p)
}
