package stream

import (
	"sync"
	"time"
)

// losses are the commits of records that belonged to another member by then. One
// alone is normal when members come and go.
type losses struct {
	mu    sync.Mutex
	total uint64
	last  [2]time.Time
}

func (l *losses) add() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.total++
	l.last = [2]time.Time{l.last[1], time.Now()}
}

// losing is for how long it is told that records are lost.
const losing = time.Minute

// often says that several were lost lately.
func (l *losses) often() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return !l.last[0].IsZero() && time.Since(l.last[0]) <= losing
}

func (l *losses) count() uint64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.total
}
