package route

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/topsail-serving/topsail/rpc"
	"github.com/topsail-serving/topsail/serving"
	"github.com/topsail-serving/topsail/test/require"
	"github.com/topsail-serving/topsail/test/wait"
)

func TestTheTableFollowsTheList(t *testing.T) {
	bubble(t, func(t *rig) {
		hosts := map[string]<-chan net.Conn{}
		sidecars := map[string]*sidecar{}
		for _, name := range []string{"a", "b", "c"} {
			hosts[name] = t.listen(name)
		}
		want := func(names ...string) {
			t.Helper()
			synctest.Wait()
			list := t.table.Replicas()
			if len(list) != len(names) || t.table.Group(serving.Definition{ModelID: v1}).Len() != len(names) {
				t.Fatalf("%d replicas and %d ready, want %v", len(list), t.table.Group(serving.Definition{ModelID: v1}).Len(), names)
			}
			for i, st := range list {
				if st.Replica != names[i] || !st.Connected || len(st.Models) != 1 || st.Models[0].ModelID != v1 {
					t.Errorf("replica %d is %+v, want %s", i, st, names[i])
				}
			}
		}
		join := func(name string) {
			sidecars[name] = t.accept(hosts[name])
			sidecars[name].announce(ready(1, v1))
		}
		want()
		t.resolve("b", "a")
		join("b")
		join("a")
		want("a", "b")
		t.resolve("a", "b") // nothing new: nobody is dialled again
		t.resolve("a", "b", "c")
		join("c")
		want("a", "b", "c")
		t.resolve("b", "c")
		want("b", "c")
		<-sidecars["a"].done
		t.resolve("b", "c", "a")
		join("a")
		want("a", "b", "c")
		if got := len(t.dialled()); got != 4 {
			t.Errorf("%d dials, want 4", got)
		}
		t.resolve()
		want()
		for _, s := range sidecars {
			<-s.done
		}
	})
}

// A replica that leaves the list gets no more questions, and keeps its connection
// until those it has are answered.
func TestALeavingReplicaAnswersWhatItHas(t *testing.T) {
	bubble(t, func(t *rig) {
		s, target := t.connected()
		in, number := t.ask(target, time.Minute)
		t.resolve()
		if t.table.Group(serving.Definition{ModelID: v1}).Len() != 0 {
			t.Fatal("it is still asked")
		}
		time.Sleep(59 * time.Second)
		s.announce(ready(8, v1)) // too late
		if t.table.Group(serving.Definition{ModelID: v1}).Len() != 0 {
			t.Fatal("it is retried")
		}
		s.reply(rpc.ReplyHead{Batch: number}, 0, output(1))
		if a := in.one(); a.Status != rpc.StatusOK {
			t.Errorf("the last answer is %v", a.Status)
		}
		<-s.done
	})
}

func TestALeavingReplicaHasNotAllTheTime(t *testing.T) {
	bubble(t, func(t *rig) {
		s, target := t.connected()
		in, _ := t.ask(target, time.Minute)
		start := time.Now()
		t.resolve()
		<-s.done
		if took, want := time.Since(start), time.Minute+overdueAfter; took < want || took > want+2*sweepEvery {
			t.Errorf("it was let go after %v, want %v", took, want)
		}
		if a := in.one(); a.Status != rpc.StatusContainer {
			t.Errorf("the last answer is %v", a.Status)
		}
	})
}

// Who wants to know is told after every change of a group: by then the table has it,
// and a replica that is lost is in no group when its questions fail.
func TestChangesAreTold(t *testing.T) {
	bubble(t, func(t *rig) {
		var told []int
		var mu sync.Mutex
		t.table.Changed = func() {
			mu.Lock()
			defer mu.Unlock()
			if n := t.table.Group(serving.Definition{ModelID: v1}).Len(); len(told) == 0 || told[len(told)-1] != n {
				told = append(told, n)
			}
		}
		host := t.listen("a")
		t.resolve("a")
		s := t.accept(host)
		s.announce(ready(1, v1))
		s.announce(rpc.Announcement{ID: 1, State: rpc.StateDraining, Model: v1})
		s.announce(ready(1, v1))
		lost := &witness{table: t.table}
		if _, failure := t.target(v1).Ask(lost, &rpc.Ask{Budget: time.Minute}, serving.Input{Type: serving.Doubles, Data: make([]byte, 8)}, time.Now()); failure != nil {
			t.Fatal(failure)
		}
		s.kill()
		s = t.accept(host)
		s.announce(ready(1, v1))
		t.resolve()
		mu.Lock()
		defer mu.Unlock()
		if want := []int{0, 1, 0, 1, 0, 1, 0}; !slices.Equal(told, want) {
			t.Errorf("it told of %v replicas, want %v", told, want)
		}
		if lost.answers != 1 || lost.replicas != 0 {
			t.Errorf("%d answers, with %d replicas", lost.answers, lost.replicas)
		}
	})
}

// witness counts the replicas that there are when its question is answered.
type witness struct {
	table             *Table
	answers, replicas int
}

func (*witness) Part(*Target, *rpc.Answer) {}

func (w *witness) Answered(*Target, *rpc.Answer, time.Duration, time.Time) {
	w.answers++
	w.replicas += w.table.Group(serving.Definition{ModelID: v1}).Len()
}

// A replica that moves is a new one at the new address; the old connection answers
// what it has.
func TestAReplicaThatMoves(t *testing.T) {
	bubble(t, func(t *rig) {
		s, target := t.connected()
		in, number := t.ask(target, time.Minute)
		host := t.listen("elsewhere")
		t.lists <- []serving.Endpoint{{Replica: "a", Addr: "elsewhere"}}
		moved := t.accept(host)
		moved.announce(ready(1, v1))
		again, next := t.ask(t.target(v1), time.Minute)
		s.reply(rpc.ReplyHead{Batch: number}, 0, output(1))
		moved.reply(rpc.ReplyHead{Batch: next}, 0, output(2))
		if a, b := in.one(), again.one(); a.Status != rpc.StatusOK || b.Status != rpc.StatusOK {
			t.Errorf("answers %v and %v", a.Status, b.Status)
		}
		<-s.done
		if st := t.table.Replicas(); len(st) != 1 || st[0].Addr != "elsewhere" {
			t.Errorf("got %+v", st)
		}
	})
}

// Run ends with everything it started, in whatever state that is: connected and
// asked, retiring, in a handshake, dialling, waiting to dial. bubble checks it.
func TestRunEndsWithEverything(t *testing.T) {
	bubble(t, func(t *rig) {
		_, target := t.connected()
		in, _ := t.ask(target, time.Minute)
		leaving := t.listen("leaving")
		mute := t.listen("mute")
		t.resolve("a", "leaving", "mute", "nobody")
		s := t.accept(leaving)
		s.announce(ready(1, v1))
		held := <-mute
		defer held.Close()
		t.listen("full") // never accepts: the dial hangs
		t.resolve("a", "leaving", "mute", "nobody", "full")
		for _, target := range t.table.Group(serving.Definition{ModelID: v1}).targets {
			if target.Replica() == "leaving" {
				_, _ = t.ask(target, time.Minute)
			}
		}
		t.resolve("a", "mute", "nobody", "full")
		t.Cleanup(func() { in.one() })
	})
}

// When the resolver ends, Run does at once, whatever is still in flight or leaving.
func TestRunEndsWhenTheResolverDoes(t *testing.T) {
	bubble(t, func(t *rig) {
		_, target := t.connected()
		in, _ := t.ask(target, time.Minute)
		host := t.listen("b")
		t.resolve("b") // a leaves, and has a question to answer
		t.accept(host).announce(ready(1, v1))
		other, _ := t.ask(t.target(v1), time.Minute)
		start := time.Now()
		t.gone <- errGone
		err := <-t.ended
		if !errors.Is(err, errGone) || time.Since(start) != 0 {
			t.Errorf("after %v: %v", time.Since(start), err)
		}
		if a, b := in.one(), other.one(); a.Status != rpc.StatusContainer || b.Status != rpc.StatusContainer {
			t.Errorf("what was in flight got %v and %v", a.Status, b.Status)
		}
		t.ended <- err // for the rig
	})
}

// hasty is a resolver that calls back after its Watch has returned.
type hasty struct{ late chan func([]serving.Endpoint) }

func (h hasty) Watch(ctx context.Context, update func([]serving.Endpoint)) error {
	h.late <- update
	return ctx.Err()
}

func TestAnUpdateAfterTheEndStartsNothing(t *testing.T) {
	h := hasty{make(chan func([]serving.Endpoint), 1)}
	table := NewTable("test", h, slog.New(slog.DiscardHandler))
	require.NoError(t, table.Run(t.Context()))
	(<-h.late)([]serving.Endpoint{{Replica: "a", Addr: "127.0.0.1:1"}})
	if len(table.Replicas()) != 0 {
		t.Error("it started a replica")
	}
}

// TestOverTCP is the same over a real connection, with many asking at once.
func TestOverTCP(t *testing.T) {
	target, stop := loopback(t)
	defer stop()
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			w := &waiter{done: make(chan rpc.Status, 1)}
			for range 200 {
				if _, failure := target.Ask(w, &rpc.Ask{Budget: time.Minute}, serving.Input{Type: serving.Doubles, Data: make([]byte, 104)}, time.Now()); failure != nil {
					t.Errorf("ask: %v", failure)
					return
				}
				if status := <-w.done; status != rpc.StatusOK {
					t.Errorf("answered %v", status)
					return
				}
			}
		})
	}
	all.Wait()
	if n := target.replica.load.all(); n != 0 {
		t.Errorf("%d in flight in the end", n)
	}
}

// waiter receives one answer at a time.
type waiter struct{ done chan rpc.Status }

func (w *waiter) Part(*Target, *rpc.Answer) {}

func (w *waiter) Answered(_ *Target, a *rpc.Answer, _ time.Duration, _ time.Time) { w.done <- a.Status }

// loopback starts a table and a sidecar that answers everything with one number.
func loopback(t testing.TB) (target *Target, stop func()) {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(context.Background())
	var all sync.WaitGroup
	all.Go(func() { echo(ctx, ln) })
	table := NewTable("gateway-1", fixed{{Replica: "a", Addr: ln.Addr().String()}}, slog.New(slog.DiscardHandler))
	all.Go(func() { _ = table.Run(ctx) })
	stop = func() { cancel(); ln.Close(); all.Wait() }
	wait.Until(t, "the replica", func() bool { return table.Group(serving.Definition{ModelID: v1}).Len() > 0 })
	return table.Group(serving.Definition{ModelID: v1}).Pick(0, nil, time.Now()), stop
}

// fixed is a resolver whose list never changes.
type fixed []serving.Endpoint

func (f fixed) Watch(ctx context.Context, update func([]serving.Endpoint)) error {
	update(f)
	<-ctx.Done()
	return ctx.Err()
}

// echo serves one gateway.
func echo(ctx context.Context, ln net.Listener) {
	nc, err := ln.Accept()
	if err != nil {
		return
	}
	conn, err := rpc.Accept(ctx, nc, sidecarHello, nil)
	if err != nil {
		return
	}
	_ = conn.Send(rpc.KindAnnounce, 0, rpc.AppendAnnounce(nil, ready(1, v1)))
	answer := output(1)
	_ = conn.Run(ctx, func(f rpc.Frame) error {
		p, err := rpc.ParsePredict(f)
		if err != nil {
			return err
		}
		b := rpc.AppendReplyHead(conn.Begin(rpc.KindReply), rpc.ReplyHead{Batch: p.Batch, Count: 1})
		return conn.End(rpc.AppendAnswer(b, &answer), 0)
	})
}
