//go:build bars

package predict

import (
	"sync"
	"testing"
	"time"
)

// TestDeadlinesUnderLoad is in real time: many queries at once, all of which miss. How
// exactly they keep to it, others say in simulated time.
func TestDeadlinesUnderLoad(t *testing.T) {
	r, stop := newRig(t, func() {})
	defer stop()
	r.replica("a", silent, m1)
	r.serves(nil, m1)
	r.ready(m1, 1)
	var all sync.WaitGroup
	for i := range 500 {
		all.Go(func() {
			q := newQuery(float64(i))
			a, err := one(t.Context(), r.p, q)
			took := time.Since(q.Received)
			if err != nil || !a.Default || took < slo-margin || took > slo+2*time.Second {
				t.Errorf("query %d took %v: %+v, %v", i, took, a, err)
			}
		})
	}
	all.Wait()
}
