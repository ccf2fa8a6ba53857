package stream

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/topsail-serving/topsail/serving"
)

func TestAffinity(t *testing.T) {
	keyed := &serving.StreamRecord{Stream: "in", Place: "3/1042", Key: []byte("record key")}
	redis := &serving.StreamRecord{Stream: "in", Place: "1718-0"}
	for _, one := range []struct {
		by      SpreadBy
		record  *serving.StreamRecord
		request Request
		want    string
	}{
		{SpreadAny, keyed, Request{Key: "model key"}, ""},
		{SpreadKey, keyed, Request{Key: "model key"}, "model key"},
		{SpreadKey, keyed, Request{}, "record key"},
		{SpreadKey, redis, Request{}, ""}, // to any
		{SpreadPartition, keyed, Request{Key: "model key"}, "in/3"},
		{SpreadPartition, redis, Request{Key: "model key"}, "in/"},
	} {
		s := newSpreader(Spread{By: one.by, HotShare: 0.25})
		if got := s.affinity(one.record, &one.request); got != one.want {
			t.Errorf("by %v: %q, want %q", one.by, got, one.want)
		}
	}
}

// TestANamedHotKey has its owners from the start, evenly, and the same for an id.
func TestANamedHotKey(t *testing.T) {
	s, again := newSpreader(Spread{By: SpreadKey, HotKeys: map[string]int{"hot": 4}}), newSpreader(Spread{By: SpreadKey, HotKeys: map[string]int{"hot": 4}})
	counts := map[string]int{}
	for i := range 4000 {
		uuid := fmt.Sprintf("3f2b-%d", i)
		key := s.composite("hot", uuid)
		if other := again.composite("hot", uuid); other != key {
			t.Fatalf("%s goes to %s and %s", uuid, key, other)
		}
		counts[key]++
		if cold := s.composite("cold", uuid); cold != "cold" {
			t.Fatalf("another key goes to %s", cold)
		}
	}
	for i := range 4 {
		if n := counts[fmt.Sprintf("hot#%d", i)]; n < 800 || n > 1200 {
			t.Errorf("owner %d has %d of 4000", i, n)
		}
	}
}

// TestAKeyBecomesHot when it has too large a share, and cold again.
func TestAKeyBecomesHot(t *testing.T) {
	s := newSpreader(Spread{By: SpreadKey, HotShare: 0.25})
	chance := rand.New(rand.NewPCG(1, 2))
	// feed spreads records of which the key has a share, and says the owners that it had.
	feed := func(share float64) []int {
		var seen []int
		for i := range 5000 {
			key := fmt.Sprint("cold ", chance.IntN(1000))
			if chance.Float64() < share {
				key = "hot"
			}
			to := s.composite(key, fmt.Sprint(i))
			if key != "hot" {
				if to != key {
					t.Fatalf("a cold key goes to %s", to)
				}
				continue
			}
			if i > 2000 && !slices.Contains(seen, max(s.hot[hash("hot")], 1)) {
				seen = append(seen, max(s.hot[hash("hot")], 1))
			}
		}
		return seen
	}
	for _, one := range []struct {
		share float64
		want  []int
	}{{0.1, []int{1}}, {0.4, []int{2}}, {0.6, []int{3}}, {0.2, []int{3}}, {0.05, []int{1}}, {1, []int{4, 5}}} {
		got := feed(one.share)
		if !slices.ContainsFunc(got, func(n int) bool { return slices.Contains(one.want, n) }) || len(got) != 1 {
			t.Errorf("with a share of %v it has %v owners, want %v", one.share, got, one.want)
		}
	}
	// What is remembered is bounded, whatever comes.
	for i := range 100_000 {
		s.composite(fmt.Sprint("key ", i/400), "1")
	}
	if len(s.counts) > len(s.last) || len(s.hot) > len(s.last) {
		t.Errorf("%d counts and %d hot keys are kept of %d", len(s.counts), len(s.hot), len(s.last))
	}
}

// TestAffinityIsAskedWith: the queries have it.
func TestAffinityIsAskedWith(t *testing.T) {
	bubble(t, func(t *testing.T) {
		broker := newMemory("in")
		broker.write(jsonRecord("a", 1), serving.StreamMessage{Stream: "in", Value: []byte(`{"uuid": "b", "input": [1], "key": "pinot"}`)})
		s := newScorer(double)
		run(t, broker, s, func(c *Config) { c.Spread.By = SpreadKey })
		settled(time.Second)
		var got []string
		for _, q := range s.asked() {
			got = append(got, q.Affinity)
		}
		slices.Sort(got)
		if fmt.Sprint(got) != "[key of a pinot]" {
			t.Errorf("affinities %v", got)
		}
	})
}
