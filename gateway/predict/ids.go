package predict

import (
	"context"
	"log/slog"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"
)

const (
	blockBits = 22 // ids in one block: 4 million
	// randomBlock is the bit that random blocks have, and leased ones have not: 53 bits in all.
	randomBlock = 1 << 30
)

// Leaser gives out numbers of blocks of query ids, each once forever.
type Leaser interface {
	LeaseQueryIDs(ctx context.Context) (block uint32, err error)
}

// IDs gives out query ids: integers below 2^53, unique across gateways and
// restarts because each gateway takes them from blocks that it leases. The next
// block is leased in the background while there is still enough of the present
// one. When none can be leased, a block is drawn at random from a range of its
// own: then unique only as far as chance goes, and said so in the log.
type IDs struct {
	leaser Leaser // nil: always at random
	log    *slog.Logger

	leasing context.Context // ends with Close
	close   context.CancelFunc

	block atomic.Pointer[block]
	mu    sync.Mutex // guards the following
	spare *block
	busy  bool
	tasks sync.WaitGroup
}

type block struct {
	first int64
	used  atomic.Int64
}

const (
	blockSize  = 1 << blockBits
	blockLow   = blockSize / 2 // where the next block is leased
	leaseAfter = 5 * time.Second
)

// NewIDs leases the first block.
func NewIDs(ctx context.Context, leaser Leaser, log *slog.Logger) *IDs {
	ids := &IDs{leaser: leaser, log: log}
	ids.leasing, ids.close = context.WithCancel(context.WithoutCancel(ctx))
	ids.block.Store(ids.lease(ctx))
	return ids
}

// Next is the next id.
func (ids *IDs) Next() int64 {
	for {
		b := ids.block.Load()
		n := b.used.Add(1) - 1
		if n == blockLow {
			ids.prefetch()
		}
		if n < blockSize {
			return b.first + n
		}
		ids.advance(b)
	}
}

// advance replaces a block that is used up.
func (ids *IDs) advance(old *block) {
	ids.mu.Lock()
	defer ids.mu.Unlock()
	if ids.block.Load() != old {
		return
	}
	next := ids.spare
	if next == nil { // the lease is late: no query waits for it
		next = ids.random()
	}
	ids.spare = nil
	ids.block.Store(next)
}

func (ids *IDs) prefetch() {
	ids.mu.Lock()
	defer ids.mu.Unlock()
	if ids.busy || ids.spare != nil {
		return
	}
	ids.busy = true
	ids.tasks.Go(func() {
		b := ids.lease(ids.leasing)
		ids.mu.Lock()
		defer ids.mu.Unlock()
		ids.spare, ids.busy = b, false
	})
}

// Close ends a lease that is under way. Ids can still be had.
func (ids *IDs) Close() {
	ids.close()
	ids.tasks.Wait()
}

func (ids *IDs) lease(ctx context.Context) *block {
	if ids.leaser == nil {
		return ids.random()
	}
	ctx, cancel := context.WithTimeout(ctx, leaseAfter)
	defer cancel()
	n, err := ids.leaser.LeaseQueryIDs(ctx)
	if err != nil || n >= randomBlock {
		ids.log.Warn("cannot lease query ids; drawing them at random", "err", err, "block", n)
		return ids.random()
	}
	return &block{first: int64(n) << blockBits}
}

func (ids *IDs) random() *block {
	return &block{first: int64(randomBlock|rand.Uint32N(randomBlock)) << blockBits}
}
