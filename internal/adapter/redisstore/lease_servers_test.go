//go:build servers

package redisstore

import (
	"testing"
	"time"

	"github.com/topsail-serving/topsail/test/require"
	"github.com/topsail-serving/topsail/test/wait"
)

// TestLeaseAfterLoss leases before and after a flush and a return to an old copy.
func TestLeaseAfterLoss(t *testing.T) {
	t.Parallel()
	cfg := config(t)
	d := dataOf(t, cfg)
	s := open(t, cfg)
	last := uint32(0)
	lease := func() {
		t.Helper()
		block, err := s.LeaseQueryIDs(t.Context())
		if err != nil || block <= last {
			t.Errorf("got block %d after %d, and error %v", block, last, err)
		}
		last = block
		wait.Until(t, "the next second", func() bool { return uint32(time.Now().Unix()-leaseEpoch) > last })
	}
	lease()
	d.flush()
	lease()
	require.NoError(t, d.client.Set(t.Context(), s.keys.lease, 7, 0).Err())
	lease()
	d.client.Set(t.Context(), s.keys.lease, 1<<32-1, 0)
	if block, err := s.LeaseQueryIDs(t.Context()); err == nil || block != 0 {
		t.Errorf("got block %d and error %v after the last", block, err)
	}
}
