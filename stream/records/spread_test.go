package records

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
		want    serving.Affinity
	}{
		{SpreadAny, keyed, Request{Key: "model key"}, serving.Affinity{}},
		{SpreadKey, keyed, Request{Key: "model key"}, serving.Affinity{Key: "model key"}},
		{SpreadKey, keyed, Request{}, serving.Affinity{Key: "record key"}},
		{SpreadKey, keyed, Request{Key: "hot"}, serving.Affinity{Key: "hot", Owners: 4}},
		{SpreadKey, redis, Request{}, serving.Affinity{}}, // to any
		{SpreadPartition, keyed, Request{Key: "hot"}, serving.Affinity{Key: "in/3", Owners: 1}},
		{SpreadPartition, redis, Request{Key: "model key"}, serving.Affinity{Key: "in/", Owners: 1}},
	} {
		s := newSpreader(Spread{By: one.by, HotKeys: map[string]int{"hot": 4}, HotShare: ByRate})
		if got := s.affinity(one.record, &one.request); got != one.want {
			t.Errorf("by %v: %+v, want %+v", one.by, got, one.want)
		}
	}
	for share, want := range map[float64]int{0: 1, 0.5: 1, ByRate: 0} {
		if got := newSpreader(Spread{By: SpreadKey, HotShare: share}).owners("key"); got != want {
			t.Errorf("with a hot share of %v a key has %d owners, want %d", share, got, want)
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
			owners := s.owners(key)
			if key != "hot" {
				if owners != 1 {
					t.Fatalf("a cold key has %d owners", owners)
				}
				continue
			}
			if i > 2000 && !slices.Contains(seen, owners) {
				seen = append(seen, owners)
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
		s.owners(fmt.Sprint("key ", i/400))
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
			got = append(got, q.Affinity.Key)
		}
		slices.Sort(got)
		if fmt.Sprint(got) != "[key of a pinot]" {
			t.Errorf("affinities %v", got)
		}
	})
}
