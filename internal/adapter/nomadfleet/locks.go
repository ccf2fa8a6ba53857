package nomadfleet

import (
	"hash/maphash"
	"sync"
)

// locks let one goroutine at a time change a job. Nomad compares indices before it
// puts a change into its log, so that of several changes at the same moment all may
// pass; those of one process it must not be left to tell apart.
type locks struct {
	once sync.Once
	seed maphash.Seed
	all  [64]sync.Mutex // jobs share them by hash
}

// lock waits for the job's turn. The caller calls unlock.
func (l *locks) lock(job string) (unlock func()) {
	l.once.Do(func() { l.seed = maphash.MakeSeed() })
	m := &l.all[maphash.String(l.seed, job)%uint64(len(l.all))]
	m.Lock()
	return m.Unlock
}
