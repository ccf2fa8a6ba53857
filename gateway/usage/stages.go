package usage

import (
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/topsail-serving/topsail/rpc"
	"github.com/topsail-serving/topsail/serving"
)

// Stages counts what comes of the inputs of the stages of one model version, as its
// answers name them. The zero value is ready. All methods may be called concurrently.
type Stages struct {
	mu  sync.Mutex // serialises changes
	all atomic.Pointer[[]*stage]
}

// stage is the counter of one of them.
type stage struct {
	name string
	Counter
}

// Ended counts an answer by how its input fared at the stages that it was at. failure is
// why it has no output; it is nil where it has one.
func (s *Stages) Ended(fared []byte, failure *serving.Failure, now time.Time) {
	for t := range rpc.StageTimes(fared) {
		c := s.counter(t.Name)
		switch {
		case c == nil:
		case !t.Ended:
			c.Ended(nil, now, t.Took)
		case failure != nil:
			c.Ended(failure, now, t.Took)
		}
	}
}

// counter is that of a stage; nil for a name that cannot be one, or when there are
// too many.
func (s *Stages) counter(name []byte) *stage {
	if c := s.find(name); c != nil {
		return c
	}
	if !serving.IsStageName(string(name)) {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if c := s.find(name); c != nil {
		return c
	}
	known := s.known()
	if len(known) == serving.MaxUsageStages {
		return nil
	}
	c := &stage{name: string(name)}
	more := append(slices.Clip(known), c)
	s.all.Store(&more)
	return c
}

func (s *Stages) find(name []byte) *stage {
	for _, c := range s.known() {
		if c.name == string(name) {
			return c
		}
	}
	return nil
}

func (s *Stages) known() []*stage {
	if all := s.all.Load(); all != nil {
		return *all
	}
	return nil
}

// Take is what was counted of each stage since it was last taken, of a version. One
// goroutine takes at a time.
func (s *Stages) Take(of serving.UsageKey) (counted []serving.Usage) {
	for _, c := range s.known() {
		of.Stage = c.name
		if u := c.Take(of); !u.Empty() {
			counted = append(counted, u)
		}
	}
	return counted
}
