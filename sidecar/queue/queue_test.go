package queue

import (
	"cmp"
	"errors"
	"math/rand/v2"
	"runtime"
	"slices"
	"sync"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/topsail-serving/topsail/rpc"
	"github.com/topsail-serving/topsail/serving"
	"github.com/topsail-serving/topsail/test/require"
)

var epoch = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

func anyone(*Item, Load) error { return nil }

// due makes an item whose deadline is so many milliseconds after the epoch; below
// 0: none.
func due(ms int) *Item {
	it := &Item{Arrived: epoch}
	if ms >= 0 {
		it.Deadline = epoch.Add(time.Duration(ms) * time.Millisecond)
	}
	return it
}

// order compares items by deadline as a reader of the specification would.
func order(a, b *Item) int {
	switch {
	case a.Deadline.IsZero() && b.Deadline.IsZero():
		return 0
	case a.Deadline.IsZero():
		return 1
	case b.Deadline.IsZero():
		return -1
	}
	return a.Deadline.Compare(b.Deadline)
}

// shadow is the plainest queue that does the same: a list, sorted after each push.
type shadow struct {
	q      *Queue
	limits Limits
	ahead  int   // what admission was told last
	refuse error // what admission says next
	items  []*Item
	went   int // how often it said that items may have gone
}

func (s *shadow) bytes() (n int) {
	for _, it := range s.items {
		n += it.bytes()
	}
	return n
}

func (s *shadow) push(t *rapid.T) {
	it := due(rapid.IntRange(-1, 20).Draw(t, "deadline"))
	it.Ask = rpc.Ask{Payload: make([]byte, rapid.IntRange(0, 300).Draw(t, "payload")), User: make([]byte, rapid.IntRange(0, 9).Draw(t, "user"))}
	s.refuse, s.ahead = nil, -1
	if rapid.IntRange(0, 9).Draw(t, "refuse") == 0 {
		s.refuse = ErrLate
	}
	err := s.q.Push(it)
	full := len(s.items) >= s.limits.Items || s.bytes()+it.bytes() > s.limits.Bytes
	if full {
		if !errors.Is(err, ErrFull) || s.ahead != -1 {
			t.Fatalf("Push on a full queue = %v, admission was told %d", err, s.ahead)
		}
		return
	}
	ahead := 0
	for _, other := range s.items {
		if order(other, it) <= 0 {
			ahead++
		}
	}
	if s.ahead != ahead {
		t.Fatalf("admission was told that %d go before, want %d", s.ahead, ahead)
	}
	if !errors.Is(err, s.refuse) {
		t.Fatalf("Push = %v, admission said %v", err, s.refuse)
	}
	if err == nil {
		s.items = append(s.items, it)
		slices.SortStableFunc(s.items, order)
	}
}

func (s *shadow) form(t *rapid.T) {
	now := epoch.Add(time.Duration(rapid.IntRange(0, 21).Draw(t, "now")) * time.Millisecond)
	size := rapid.IntRange(1, 9).Draw(t, "size")
	line := drawLine(t)
	var b Batch
	went := s.went
	others := drawOthers(t)
	form(s.q, &b, now, size, others, line)
	if s.went == went {
		t.Fatal("it did not say that items may have gone")
	}
	s.items = s.items[checkForm(t, s.items, &b, now, size, others, line):]
}

func (s *shadow) remove(t *rapid.T) {
	ms := rapid.IntRange(-1, 20).Draw(t, "deadline")
	match := func(it *Item) bool { return order(it, due(ms)) == 0 }
	var want []*Item
	for _, it := range s.items {
		if match(it) {
			want = append(want, it)
		}
	}
	s.items = slices.DeleteFunc(s.items, match)
	went := s.went
	if got := s.q.Remove(match); !slices.Equal(got, want) || s.went == went {
		t.Fatalf("Remove gave %d items, want %d", len(got), len(want))
	}
}

func (s *shadow) drain(t *rapid.T) {
	if got := s.q.Drain(); !slices.Equal(got, s.items) {
		t.Fatalf("Drain gave %d items, want %d in order", len(got), len(s.items))
	}
	s.items = nil
}

func (s *shadow) check(t *rapid.T) {
	if s.q.Len() != len(s.items) || !slices.Equal(waiting(s.q), s.items) {
		t.Fatalf("%d items wait, want %d in order", s.q.Len(), len(s.items))
	}
	if n, bytes := s.q.held(serving.LowestPriority); n != len(s.items) || bytes != s.bytes() {
		t.Fatalf("%d items of %d bytes are counted, want %d of %d", n, bytes, len(s.items), s.bytes())
	}
	if w := s.q.Waiting(serving.LowestPriority); w != LoadOf(s.items) || w != s.q.Spans(epoch)[0].Load {
		t.Fatalf("%+v waits, want %+v", w, LoadOf(s.items))
	}
	limits := Limits{Items: rapid.IntRange(0, 30).Draw(t, "below items"), Bytes: rapid.IntRange(0, 8000).Draw(t, "below bytes")}
	if s.q.Below(limits) != (len(s.items) < limits.Items && s.bytes() < limits.Bytes) {
		t.Fatalf("with %d items of %d bytes it is below %+v: %v", len(s.items), s.bytes(), limits, s.q.Below(limits))
	}
	n := rapid.IntRange(1, 5).Draw(t, "n")
	head, ok := s.q.First(epoch, n)
	if ok != (len(s.items) > 0) {
		t.Fatalf("First says %v with %d items", ok, len(s.items))
	}
	if ok {
		first := slices.MinFunc(s.items[:min(n, len(s.items))], func(a, b *Item) int { return a.Arrived.Compare(b.Arrived) })
		if !head.Arrived.Equal(first.Arrived) || head.Left != s.items[0].Left(epoch) {
			t.Fatalf("First = %v, %v; want %v, %v", head.Arrived, head.Left, first.Arrived, s.items[0].Left(epoch))
		}
	}
	if w := s.q.Spans(epoch)[0]; w.N != len(s.items) || w.N > 0 && (!w.First.Equal(epoch.Add(s.items[0].Left(epoch))) || !w.Last.Equal(epoch.Add(s.items[w.N-1].Left(epoch)))) {
		t.Fatalf("Spans = %+v", w)
	}
	for _, l := range s.q.lanes {
		for i, it := range l.items[:cap(l.items)] {
			if (it == nil) != (i < l.head || i >= len(l.items)) {
				t.Fatalf("slot %d of head %d, len %d: an item that was given out is kept, or one is lost", i, l.head, len(l.items))
			}
		}
	}
}

func TestTheQueueDoesAsASortedList(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := &shadow{limits: Limits{
			Items: rapid.IntRange(1, 30).Draw(t, "items"),
			Bytes: rapid.IntRange(200, 8000).Draw(t, "bytes"),
		}}
		s.q = New(s.limits, func(_ *Item, ahead Load) error {
			s.ahead = ahead.N
			return s.refuse
		}, func() { s.went++ })
		t.Repeat(map[string]func(*rapid.T){
			"push": s.push, "push more": s.push, "push yet more": s.push,
			"form": s.form, "remove": s.remove, "drain": s.drain, "": s.check,
		})
	})
}

// Items that keep moving through a standing queue must not make the slice grow,
// and pushing must stay cheap, at any depth.
func TestAStandingQueueDoesNotGrow(t *testing.T) {
	for _, depth := range []int{1, 7, 128, 1000} {
		for _, size := range []int{1, 8, 64} {
			q := New(Limits{Items: 4096, Bytes: 1 << 30}, anyone, nil)
			for range depth {
				q.Push(due(1))
			}
			var b Batch
			for range 2 * (depth + 100) {
				form(q, &b, epoch, size, 0, Line{})
				for range b.Items {
					require.NoError(t, q.Push(due(1)))
				}
			}
			if q.Len() != depth || cap(q.lanes[0].items) > 4*depth+4 {
				t.Errorf("depth %d, batches of %d: %d wait in a slice of %d", depth, size, q.Len(), cap(q.lanes[0].items))
			}
		}
	}
}

func TestManyPushersAndTakersLoseNothing(t *testing.T) {
	const pushers, takers, each = 8, 4, 2000
	q := New(Limits{Items: 1 << 20, Bytes: 1 << 30}, anyone, nil)
	var pushing, taking sync.WaitGroup
	for p := range pushers {
		pushing.Go(func() {
			r := rand.New(rand.NewPCG(1, uint64(p)))
			for i := range each {
				it := due(r.IntN(1000))
				it.Batch, it.Index = uint64(p), uint32(i)
				if err := q.Push(it); err != nil {
					t.Error(err)
				}
				if i%100 == 0 {
					for _, it := range q.Remove(func(it *Item) bool { return it.Batch == uint64(p) && it.Index%3 == 0 }) {
						if err := q.Push(it); err != nil {
							t.Error(err)
						}
					}
				}
			}
		})
	}
	taken := make([]map[*Item]bool, takers)
	for i := range takers {
		taken[i] = map[*Item]bool{}
		taking.Go(func() {
			var b Batch
			for ; ; runtime.Gosched() {
				form(q, &b, epoch.Add(500*time.Millisecond), 16, 0, linear(0, 1))
				last := false
				for _, it := range slices.Concat(b.Expired, b.Late, b.Items) {
					if last = it.Batch == pushers; last {
						break
					}
					if taken[i][it] {
						t.Error("an item was given twice to one taker")
					}
					taken[i][it] = true
				}
				if last {
					return
				}
			}
		})
	}
	pushing.Wait()
	for range takers * 16 { // more than enough for each taker to meet one, at the end of the queue
		last := due(-1)
		last.Batch = pushers
		require.NoError(t, q.Push(last))
	}
	taking.Wait()
	all := map[*Item]bool{}
	for _, items := range taken {
		for it := range items {
			if all[it] {
				t.Fatal("an item was given to two takers")
			}
			all[it] = true
		}
	}
	if len(all) != pushers*each {
		t.Errorf("%d items came out, %d went in", len(all), pushers*each)
	}
}

func TestItemsAreAnsweredOnce(t *testing.T) {
	got := answers{}
	it := &Item{Index: 7, From: &got}
	it.Answer(&rpc.Answer{More: true})
	if it.Answered() {
		t.Error("an item is answered although more is to come")
	}
	it.Answer(&rpc.Answer{Index: 3})
	it.Refuse(rpc.StatusContainer, "too late")
	it.Answer(&rpc.Answer{More: true})
	if len(got) != 2 || !it.Answered() {
		t.Fatalf("%d answers went out, want 2", len(got))
	}
	for _, a := range got {
		if a.Index != 7 || a.Status != rpc.StatusOK {
			t.Errorf("answer %+v does not name its item", a)
		}
	}
}

type answers []rpc.Answer

func (a *answers) Answer(_ *Item, answer *rpc.Answer) { *a = append(*a, *answer) }

func TestBudgetAndLeft(t *testing.T) {
	it := due(30)
	it.Arrived = epoch.Add(10 * time.Millisecond)
	if it.Budget() != 20*time.Millisecond || it.Left(epoch) != 30*time.Millisecond {
		t.Errorf("budget %v, left %v", it.Budget(), it.Left(epoch))
	}
	if free := due(-1); cmp.Compare(free.Left(epoch), time.Hour) <= 0 || free.Budget() <= time.Hour {
		t.Errorf("without a deadline: budget %v, left %v", free.Budget(), free.Left(epoch))
	}
}
