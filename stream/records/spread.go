package records

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/topsail-serving/topsail/serving"
)

// SpreadBy is how a job spreads records over the replicas of models.
type SpreadBy uint8

const (
	SpreadAny       SpreadBy = iota // to any
	SpreadKey                       // those of one model key to one owner
	SpreadPartition                 // those of one partition to one replica
)

var spreadNames = [...]string{"any", "key", "partition"}

func (s SpreadBy) String() string {
	if int(s) < len(spreadNames) {
		return spreadNames[s]
	}
	return fmt.Sprintf("SpreadBy(%d)", uint8(s))
}

// MarshalText and UnmarshalText let a SpreadBy stand in JSON and TOML by name.
func (s SpreadBy) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

func (s *SpreadBy) UnmarshalText(b []byte) error {
	for i, name := range spreadNames {
		if string(b) == name {
			*s = SpreadBy(i)
			return nil
		}
	}
	return fmt.Errorf("spread %q is unknown: use any, key or partition", b)
}

// Spread says how to spread records, and over how many owners a key that one is not
// enough for.
type Spread struct {
	By       SpreadBy
	HotKeys  map[string]int // owners of these keys
	HotShare float64        // a key with a larger share of the last 1024 records gets an owner for each such share; 0: none does; ByRate
}

// ByRate as HotShare gives a key as many owners as its records need.
const ByRate = -1

func (s *Spread) check(job string) (errs []error) {
	for _, key := range slices.Sorted(maps.Keys(s.HotKeys)) {
		if n := s.HotKeys[key]; key == "" || n < 1 || n > serving.MaxOwners {
			errs = append(errs, fmt.Errorf("stream %q: hot_keys: %q must have between 1 and %d owners", job, key, serving.MaxOwners))
		}
	}
	if s.HotShare != ByRate && !(s.HotShare >= 0 && s.HotShare <= 1) {
		errs = append(errs, fmt.Errorf("stream %q: hot_share must be between 0 and 1, or %d: as many owners as a key needs", job, ByRate))
	}
	return errs
}

// spreader gives records their affinity.
type spreader struct {
	spread Spread
	last   [1024]uint64 // hashes of the last keys, a ring
	next   int
	counts map[uint64]int // in last
	hot    map[uint64]int // owners of keys that have more than one by their share
}

func newSpreader(s Spread) *spreader {
	return &spreader{spread: s, counts: map[uint64]int{}, hot: map[uint64]int{}}
}

// affinity is what Query.Affinity is to be for a record.
func (s *spreader) affinity(r *serving.StreamRecord, req *Request) serving.Affinity {
	switch s.spread.By {
	case SpreadKey:
		key := req.Key
		if key == "" {
			key = string(r.Key)
		}
		if key == "" {
			return serving.Affinity{}
		}
		return serving.Affinity{Key: key, Owners: s.owners(key)}
	case SpreadPartition:
		partition, _, found := strings.Cut(r.Place, "/")
		if !found {
			partition = "" // the stream is one
		}
		return serving.Affinity{Key: r.Stream + "/" + partition, Owners: 1}
	}
	return serving.Affinity{}
}

// owners is how many owners the key of the next record has; 0: as many as it needs.
func (s *spreader) owners(key string) int {
	if n := s.spread.HotKeys[key]; n > 0 {
		return n
	}
	switch s.spread.HotShare {
	case ByRate:
		return 0
	case 0:
		return 1
	}
	h := hash(key)
	count := s.count(h)
	share := float64(count) / float64(len(s.last)) / s.spread.HotShare
	switch owners := min(1+int(share), serving.MaxOwners); {
	case owners > max(s.hot[h], 1):
		s.hot[h] = owners
	case share < 0.5: // and not already below 1, lest it go to and fro
		delete(s.hot, h)
	}
	return max(s.hot[h], 1)
}

// count takes a key into the last ones, and says how many of them it has.
func (s *spreader) count(h uint64) int {
	if oldest := s.last[s.next]; oldest != 0 {
		if s.counts[oldest]--; s.counts[oldest] == 0 {
			delete(s.counts, oldest)
			delete(s.hot, oldest)
		}
	}
	s.last[s.next] = h
	s.next = (s.next + 1) % len(s.last)
	s.counts[h]++
	return s.counts[h]
}

// hash is FNV-1a, the same in every process; never 0.
func hash(text string) uint64 {
	h := uint64(14695981039346656037)
	for i := range len(text) {
		h = (h ^ uint64(text[i])) * 1099511628211
	}
	return max(h, 1)
}
