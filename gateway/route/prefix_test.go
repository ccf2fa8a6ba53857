package route

import (
	"bytes"
	"container/heap"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"
	"time"
)

// fleetOf is a group of so many replicas that are well.
func fleetOf(n int) *Group {
	g := &Group{}
	for i := range n {
		r := &replica{load: load{known: time.Now()}}
		r.endpoint.Replica = fmt.Sprint("r", i)
		g.targets = append(g.targets, &Target{replica: r})
	}
	return g
}

// prompt is a text of so many blocks, of which the first of them are those of a conversation.
func prompt(conversation, blocks int) []byte {
	var b []byte
	for i := range blocks {
		b = append(b, bytes.Repeat([]byte{byte(conversation), byte(conversation >> 8), byte(i), byte(i >> 8)}, prefixBlock/4)...)
	}
	return b
}

func TestPrefixesStayWithTheirReplica(t *testing.T) {
	g, p, now := fleetOf(4), NewPrefixes(), time.Now()
	owners := map[*Target]bool{}
	for c := range 32 {
		first := p.Pick(g, prompt(c, 4), nil, now)
		owners[first] = true
		for turn := range 5 {
			if t2 := p.Pick(g, append(prompt(c, 5+turn), "a rest that is no whole block"...), nil, now); t2 != first {
				t.Fatalf("turn %d of conversation %d went elsewhere", turn, c)
			}
		}
	}
	if len(owners) != 4 {
		t.Errorf("all conversations are with %d of 4 replicas", len(owners))
	}
	if p.Pick(g, []byte("short"), nil, now) == nil {
		t.Error("an input without a whole block found no replica")
	}
}

// What is with a replica that is busy, gone, ejected or just failed goes elsewhere, and stays there.
func TestPrefixesLeaveAReplica(t *testing.T) {
	for name, spoil := range map[string]func(g *Group, t *Target) (*Group, *Target){
		"busy": func(g *Group, t *Target) (*Group, *Target) { t.replica.load.ask(0, 50); return g, nil },
		"gone": func(g *Group, t *Target) (*Group, *Target) {
			return &Group{targets: slices.DeleteFunc(slices.Clone(g.targets), func(o *Target) bool { return o == t })}, nil
		},
		"ejected": func(g *Group, t *Target) (*Group, *Target) {
			for range ejectAfter {
				t.replica.health.fail(time.Now())
			}
			return g, nil
		},
		"failed": func(g *Group, t *Target) (*Group, *Target) { return g, t },
	} {
		g, p, now := fleetOf(4), NewPrefixes(), time.Now()
		first := p.Pick(g, prompt(1, 8), nil, now)
		g, not := spoil(g, first)
		second := p.Pick(g, prompt(1, 8), not, now)
		if second == nil || second == first {
			t.Errorf("%s: it was asked again", name)
		}
		if third := p.Pick(g, prompt(1, 9), nil, now); third != second {
			t.Errorf("%s: it did not stay where it went", name)
		}
	}
}

func TestPrefixesAreBounded(t *testing.T) {
	g, p, now := fleetOf(2), NewPrefixes(), time.Now()
	for c := range 3 * maxPrefixes / maxPrefixBlocks {
		p.Pick(g, prompt(c, maxPrefixBlocks+10), nil, now)
	}
	if n := len(p.recent) + len(p.older); n > 2*maxPrefixes {
		t.Errorf("%d prefixes are remembered", n)
	}
}

// engine simulates a replica that computes the blocks of prompts that it does not have, one prompt after
// another, and generates afterwards.
type engine struct {
	have  map[uint64]int // block, to when it was used last
	clock int
	free  time.Duration // when it has computed all prompts so far
}

const (
	engineBlocks = 700                    // of its cache, a third of what all conversations need
	computeBlock = 4 * time.Millisecond   // about 64 tokens
	generate     = 600 * time.Millisecond // an answer
)

// ask is when the first token comes, and how many blocks were in the cache.
func (e *engine) ask(blocks []uint64, now time.Duration) (first time.Duration, hits int) {
	e.clock++
	for hits < len(blocks) && e.have[blocks[hits]] > 0 {
		hits++
	}
	for _, b := range blocks {
		e.have[b] = e.clock
	}
	if len(e.have) > engineBlocks {
		byUse := slices.SortedFunc(maps.Keys(e.have), func(a, b uint64) int { return e.have[a] - e.have[b] })
		for _, b := range byUse[:len(byUse)-engineBlocks] {
			delete(e.have, b)
		}
	}
	e.free = max(e.free, now) + time.Duration(len(blocks)-hits+1)*computeBlock
	return e.free, hits
}

// turn is when a conversation asks next, or an answer ends.
type turn struct {
	at           time.Duration
	conversation int
	blocks       int
	ends         *Target // nil: it asks
}

type turns []turn

func (t turns) Len() int           { return len(t) }
func (t turns) Less(i, j int) bool { return t[i].at < t[j].at }
func (t turns) Swap(i, j int)      { t[i], t[j] = t[j], t[i] }
func (t *turns) Push(x any)        { *t = append(*t, x.(turn)) }
func (t *turns) Pop() any {
	last := (*t)[len(*t)-1]
	*t = (*t)[:len(*t)-1]
	return last
}

// chats simulates conversations for four minutes on four engines, and says what share of blocks was in a
// cache and how long first tokens took.
func chats(pick func(g *Group, input []byte, now time.Time) *Target) (hitRate float64, p50, p99 time.Duration) {
	random := rand.New(rand.NewPCG(1, 2))
	g, epoch := fleetOf(4), time.Now()
	engines := map[*Target]*engine{}
	for _, t := range g.targets {
		t.replica.load.known = epoch
		engines[t] = &engine{have: map[uint64]int{}}
	}
	hash := NewPrefixes()
	var queue turns
	for c := range 48 {
		heap.Push(&queue, turn{at: time.Duration(random.IntN(5000)) * time.Millisecond, conversation: c, blocks: 8})
	}
	var firsts []time.Duration
	asked, had, next := 0, 0, 48
	for len(queue) > 0 && queue[0].at < 4*time.Minute {
		e := heap.Pop(&queue).(turn)
		if e.ends != nil {
			e.ends.replica.load.ask(0, -1)
			continue
		}
		input := prompt(e.conversation, e.blocks)
		now := epoch.Add(e.at)
		t := pick(g, input, now)
		first, hits := engines[t].ask(hash.of(input), e.at)
		l := &t.replica.load
		before := l.before(0)
		l.ask(0, 1)
		l.output(first-e.at, 0, before, now)
		l.report(0, engines[t].free-e.at, now)
		firsts = append(firsts, first-e.at)
		asked, had = asked+e.blocks, had+hits
		heap.Push(&queue, turn{at: first + generate, ends: t})
		e.at, e.blocks = first+generate+time.Duration(random.ExpFloat64()*float64(3*time.Second)), e.blocks+4
		if e.blocks > 80 { // the next one begins
			e.conversation, e.blocks = next, 8
			next++
		}
		heap.Push(&queue, e)
	}
	slices.Sort(firsts)
	return float64(had) / float64(asked), firsts[len(firsts)/2], firsts[len(firsts)*99/100]
}

// With a simulated engine the choice by prefix computes a fraction of the blocks, and first tokens come
// sooner.
func TestWhatPrefixesGain(t *testing.T) {
	rate, p50, p99 := chats(func(g *Group, _ []byte, now time.Time) *Target { return g.Pick(0, nil, now) })
	p := NewPrefixes()
	by, by50, by99 := chats(func(g *Group, input []byte, now time.Time) *Target { return p.Pick(g, input, nil, now) })
	t.Logf("shortest wait: %.0f %% of blocks cached, first token p50 %v, p99 %v", 100*rate, p50, p99)
	t.Logf("by prefix:     %.0f %% of blocks cached, first token p50 %v, p99 %v", 100*by, by50, by99)
	if by < 0.8 || by < rate+0.1 || by50 > p50 || by99 > p99 {
		t.Error("routing by prefix gains too little")
	}
}
