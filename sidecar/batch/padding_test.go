package batch

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/topsail-serving/topsail/rpc"
)

// A model that is compiled for a size gets batches of that size, and nothing counts or
// answers what they were filled with.
func TestPadding(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, linear(2, 0), func(c *Config) { c.Pad = 4 })
		for range 5 {
			r.push(100 * ms)
		}
		pass(time.Second)
		for _, b := range r.batches {
			if len(b.items) != 4 {
				t.Errorf("a batch of %d, want 4", len(b.items))
			}
		}
		if got := r.statuses()[rpc.StatusOK]; got != 5 || len(r.answers) != 5 || r.observed != 5 || r.waited != 5 {
			t.Errorf("%d good of %d answers, %d run, %d waited; want 5 each", got, len(r.answers), r.observed, r.waited)
		}
		r.fail = errors.New("lost")
		r.push(100 * ms)
		pass(time.Second)
		if len(r.answers) != 6 {
			t.Errorf("%d answers, want 6", len(r.answers))
		}
		r.end()
	})
}
