package route

import (
	"hash/maphash"
	"slices"
	"sync"
	"time"

	"github.com/topsail-serving/topsail/serving"
)

const (
	// prefixBlock is by how many bytes one prefix of an input is longer than the one before.
	prefixBlock = 256
	// maxPrefixBlocks bounds what is looked at of an input.
	maxPrefixBlocks = 256
	// maxPrefixes bounds what is remembered: twice as many prefixes, in about 40 bytes each.
	maxPrefixes = 1 << 16
)

// A replica is passed over when it has more in flight than these allow beside the mean of all
// (Mirrokni, Thorup and Zadimoghaddam, "Consistent hashing with bounded loads", 2018).
const (
	prefixImbalance = 1.25
	prefixSpare     = 2
)

// Prefixes remember which replica was asked last about inputs that begin alike. An engine that
// generates text keeps what it computed for a prompt, and need not compute the beginning of the next
// one again. It is safe for concurrent use.
type Prefixes struct {
	seed func() maphash.Seed // of the hashes, which do not leave this process

	mu            sync.Mutex          // guards the following
	recent, older map[uint64]*replica // by the hash of a prefix; older is given up when recent is full
}

// NewPrefixes remembers nothing yet.
func NewPrefixes() *Prefixes { return &Prefixes{seed: sync.OnceValue(maphash.MakeSeed)} }

// of are the hashes of the prefixes of an input, by length.
func (p *Prefixes) of(input []byte) []uint64 {
	hashes := make([]uint64, min(len(input)/prefixBlock, maxPrefixBlocks))
	var h maphash.Hash
	h.SetSeed(p.seed())
	for i := range hashes {
		_, _ = h.Write(input[i*prefixBlock : (i+1)*prefixBlock]) // cannot fail
		hashes[i] = h.Sum64()
	}
	return hashes
}

// Pick picks a replica other than not (which may be nil): the one that was asked last about the longest
// prefix, unless it has too much in flight beside the others, else as Group.Pick does. It remembers the
// choice.
func (p *Prefixes) Pick(g *Group, input []byte, not *Target, now time.Time) *Target {
	prefixes := p.of(input)
	p.mu.Lock()
	defer p.mu.Unlock()
	t := p.longest(g, prefixes, not, now)
	if t == nil {
		t = g.Pick(serving.LowestPriority, not, now)
	}
	if t != nil {
		p.remember(prefixes, t.replica)
	}
	return t
}

// longest is the usable replica with the longest of the prefixes, or nil. p.mu is held.
func (p *Prefixes) longest(g *Group, prefixes []uint64, not *Target, now time.Time) *Target {
	limit := g.inFlightLimit()
	for _, prefix := range slices.Backward(prefixes) {
		owner := p.owner(prefix)
		if owner == nil {
			continue
		}
		t := g.on(owner)
		if t == nil || t.sameReplica(not) || float64(owner.load.all()) > limit || owner.health.ejected() {
			continue // a shorter prefix may be with another
		}
		return t
	}
	return nil
}

// owner is the replica that was asked last about a prefix; nil: none is remembered. p.mu is held.
func (p *Prefixes) owner(prefix uint64) *replica {
	if r := p.recent[prefix]; r != nil {
		return r
	}
	return p.older[prefix]
}

// remember notes who is asked. p.mu is held.
func (p *Prefixes) remember(prefixes []uint64, r *replica) {
	if p.recent == nil || len(p.recent)+len(prefixes) > maxPrefixes {
		p.recent, p.older = make(map[uint64]*replica, len(prefixes)), p.recent
	}
	for _, prefix := range prefixes {
		p.recent[prefix] = r
	}
}

// inFlightLimit is what a replica may have in flight to be preferred.
func (g *Group) inFlightLimit() float64 {
	sum := int64(0)
	for _, t := range g.targets {
		sum += t.replica.load.all()
	}
	return prefixImbalance*float64(sum)/float64(max(len(g.targets), 1)) + prefixSpare
}

// on is the target on a replica, or nil.
func (g *Group) on(r *replica) *Target {
	for _, t := range g.targets {
		if t.replica == r {
			return t
		}
	}
	return nil
}
