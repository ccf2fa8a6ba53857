package contract

import (
	"cmp"
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/topsail-serving/topsail/serving"
)

func (s *streams) uncommittedAtClose() {
	s.write(30)
	a, _, _ := s.pollAll("a", 30)
	s.close(a)
	b, _ := s.join("b")
	s.finish(b)
}

// leaves has a member leave with records: others have them at once, from the first on, and do
// not wait until it would be missed.
func (s *streams) leaves() {
	s.write(3000) // more than a batch: some are with no member
	a := s.joinFor("a")
	s.poll(a, 2000)
	s.close(a)
	seen := map[string]bool{}
	for _, r := range s.poll(s.joinFor("b"), 10) {
		number, err := strconv.Atoi(string(r.Value))
		if err != nil || !seen[string(r.Key)] && number >= streamKeys {
			s.Errorf("%s begins with record %s", r.Key, r.Value)
		}
		seen[string(r.Key)] = true
	}
}

func (s *streams) uncommittedAtKill() {
	s.write(30)
	_, wire, _ := s.pollAll("a", 30)
	b, _ := s.join("b")
	wire.Cut()
	s.finish(b)
}

// lost has a member commit what another one has by then.
func (s *streams) lost() {
	s.write(200)
	a, _, records := s.pollAll("a", 200)
	b, _ := s.join("b")
	if s.Silence != nil {
		s.Silence(a)
	}
	others := s.poll(b, 200)
	if err := s.commit(s.Context(), a, records, s.echo(records)); !errors.Is(err, serving.ErrRecordsLost) {
		s.Fatalf("error %v, with %d of %d records at another member", err, len(others), len(records))
	}
	if n := s.results(); n != 0 {
		s.Fatalf("%d results of a commit that was refused", n)
	}
	ctx, cancel := context.WithCancel(s.Context())
	var working sync.WaitGroup
	defer working.Wait()
	defer cancel()
	working.Go(func() {
		s.persist(ctx, b, others, s.echo(others)) // or some are lost, for a comes to belong to the group again
		for ctx.Err() == nil {
			s.step(ctx, b, 100)
		}
	})
	own := slices.DeleteFunc(records, func(r serving.StreamRecord) bool { return r.IsLost() })
	s.persist(s.Context(), a, own, s.echo(own))
	s.finish(a)
}

// sameName has a process come back under its name before it is missed.
func (s *streams) sameName() {
	s.write(40)
	_, wire, _ := s.pollAll("a", 40)
	wire.Cut()
	again, _ := s.join("a")
	s.finish(again)
}

// cutCommit has a member die in a Commit, at one of the moments that there are: after
// some of its writes, whose answers it does not see.
func (s *streams) cutCommit(writes int) {
	s.write(60)
	member, wire, records := s.pollAll("a", 60)
	wire.CutAfter(writes)
	ctx, cancel := context.WithTimeout(s.Context(), s.Takeover/4)
	defer cancel()
	err := s.commit(ctx, member, records, s.echo(records))
	wire.Cut()
	name := "a"
	if writes%2 == 1 {
		name = "b"
	}
	next, _ := s.join(name)
	s.finish(next)
	if n := s.results(); err == nil && n != s.written {
		s.Errorf("%d results after a commit that succeeded", n)
	}
}

// comeAndGo has three members work, each of which leaves or dies after a while for the
// next one.
func (s *streams) comeAndGo() {
	const slots = 3
	records := cmp.Or(s.Churn, 10_000)
	s.write(records / 2)
	ctx, cancel := context.WithCancel(s.Context())
	var working sync.WaitGroup
	defer working.Wait()
	defer cancel()
	for slot := range slots {
		chance := rand.New(rand.NewPCG(uint64(slot), 1))
		working.Go(func() {
			for life := 0; ctx.Err() == nil; life++ {
				s.live(ctx, numbered(numbered("slot-", slot)+"-", life), chance)
			}
		})
	}
	s.write(records - records/2)
	s.awaitResults()
	cancel()
	working.Wait()
	if n := s.results(); n != records {
		s.Errorf("%d results of %d records", n, records)
	}
}

// live is the life of a member: some batches, and an end.
func (s *streams) live(ctx context.Context, name string, chance *rand.Rand) {
	wire := &Wire{}
	member := s.Join(name, wire)
	defer s.close(member)
	for range 6 + chance.IntN(6) {
		s.step(ctx, member, 50+chance.IntN(100))
		if ctx.Err() != nil {
			return
		}
	}
	if chance.IntN(4) == 0 {
		wire.Cut()
	}
}

// restart kills the broker while members work.
func (s *streams) restart() {
	s.write(2000)
	ctx, cancel := context.WithCancel(s.Context())
	var working sync.WaitGroup
	defer working.Wait()
	defer cancel()
	for _, name := range []string{"a", "b"} {
		member, _ := s.join(name)
		working.Go(func() {
			for ctx.Err() == nil {
				s.step(ctx, member, 50)
			}
		})
	}
	for s.results() < s.written/10 {
		time.Sleep(10 * time.Millisecond) // the tick of a poll
	}
	s.Restart()
	s.write(500)
	s.awaitResults()
}
