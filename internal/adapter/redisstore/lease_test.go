package redisstore

import (
	"sync"
	"testing"
)

// TestLease leases from several processes at once: no block comes twice.
func TestLease(t *testing.T) {
	cfg := config(t)
	blocks := make(chan uint32, 100)
	var all sync.WaitGroup
	for range 4 {
		s := open(t, cfg)
		all.Go(func() {
			for range cap(blocks) / 4 {
				block, err := s.LeaseQueryIDs(t.Context())
				if err != nil {
					t.Error(err)
				}
				blocks <- block
			}
		})
	}
	all.Wait()
	close(blocks)
	leased := map[uint32]bool{}
	for block := range blocks {
		if leased[block] || block >= 1<<30 {
			t.Errorf("block %d; leased before: %v", block, leased[block])
		}
		leased[block] = true
	}
}
