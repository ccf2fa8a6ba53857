package route

import (
	"context"
	"io"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/topsail-serving/topsail/rpc"
	"github.com/topsail-serving/topsail/serving"
	"github.com/topsail-serving/topsail/test/require"
)

func TestAnAnswerFindsItsQuestion(t *testing.T) {
	bubble(t, func(t *rig) {
		s, target := t.connected()
		a, _ := t.ask(target, 20*time.Millisecond)
		b, _ := t.ask(target, time.Second)
		first, second := <-s.asked, <-s.asked
		if first.Model != 7 || first.Count != 1 || first.Batch == second.Batch {
			t.Errorf("asked %+v, %+v", first, second)
		}
		if x, y := <-s.budgets, <-s.budgets; x != 20*time.Millisecond || y != time.Second {
			t.Errorf("with budgets of %v and %v", x, y)
		}
		s.reply(rpc.ReplyHead{Batch: second.Batch}, 0, output(2))
		s.reply(rpc.ReplyHead{Batch: first.Batch}, 0, output(1))
		for in, want := range map[*inbox]float64{a: 1, b: 2} {
			answer := in.one()
			out, err := answer.Output()
			if err != nil || string(out.JSON) != string(mustJSON(t.T, want)) {
				t.Errorf("got %v, %v, want %v", out, err, want)
			}
		}
	})
}

func mustJSON(t *testing.T, x float64) []byte {
	t.Helper()
	out, err := serving.NewOutput(serving.Number(x))
	require.NoError(t, err)
	return out.JSON
}

func TestAnnouncementsDecideWhoIsAsked(t *testing.T) {
	v2 := serving.ModelID{Model: "m", Version: "2"}
	bubble(t, func(t *rig) {
		s, _ := t.connected()
		lens := func(one, two int) {
			t.Helper()
			if a, b := t.table.Group(serving.Definition{ModelID: v1}).Len(), t.table.Group(serving.Definition{ModelID: v2}).Len(); a != one || b != two {
				t.Fatalf("%d and %d replicas are ready, want %d and %d", a, b, one, two)
			}
		}
		state := func(id uint32, model serving.ModelID, st rpc.State) rpc.Announcement {
			a := ready(id, model)
			a.State = st
			return a
		}
		lens(1, 0)
		s.announce(state(8, v2, rpc.StateLoading)) // amends: the other stays
		lens(1, 0)
		s.announce(ready(8, v2))
		lens(1, 1)
		s.announce(state(7, v1, rpc.StateDraining))
		lens(0, 1)
		s.announce(ready(7, v1))
		lens(1, 1)
		s.announce(rpc.Announcement{ID: 8, State: rpc.StateGone})
		lens(1, 0)
		s.announce(rpc.Announcement{ID: 99, State: rpc.StateGone}) // never announced
		lens(1, 0)
		s.announce(ready(7, v2)) // the id means something else now
		lens(0, 1)
		stage := ready(9, v1)
		stage.Stage = "encode"
		s.announce(stage) // a stage alone cannot answer
		lens(0, 1)
		s.send(rpc.KindDrain, 0, nil) // the announcements will say so
		lens(0, 1)
		s.kill()
		synctest.Wait()
		lens(0, 0)
	})
}

func TestALostConnectionFailsWhatIsInFlightOnce(t *testing.T) {
	bubble(t, func(t *rig) {
		s, target := t.connected()
		var inboxes []*inbox
		for range 100 {
			in, _ := t.ask(target, time.Second)
			inboxes = append(inboxes, in)
		}
		s.reply(rpc.ReplyHead{Batch: (<-s.asked).Batch}, 0, output(1))
		answered := 0
		s.kill()
		synctest.Wait()
		for _, in := range inboxes {
			switch a := in.one(); a.Status {
			case rpc.StatusOK:
				answered++
			case rpc.StatusContainer:
				if !strings.Contains(string(a.Message), "the connection to the replica was lost") {
					t.Fatalf("it failed with %q", a.Message)
				}
			default:
				t.Fatalf("it failed with %v", a.Status)
			}
		}
		if answered != 1 {
			t.Errorf("%d were answered", answered)
		}
		if st := t.table.Replicas()[0]; st.InFlight != 0 || st.Connected || len(st.Models) != 0 {
			t.Errorf("afterwards %+v", st)
		}
		if _, failure := target.Ask(inboxes[0], &rpc.Ask{}, serving.Input{}, time.Now()); failure == nil || failure.Cause != serving.NoReplica {
			t.Errorf("asking without a connection: %v", failure)
		}
	})
}

func TestTheConnectionComesBackAndNothingOldWithIt(t *testing.T) {
	bubble(t, func(t *rig) {
		host := t.listen("a")
		t.resolve("a")
		s := t.accept(host)
		s.announce(ready(7, v1))
		_, _ = t.ask(t.target(v1), time.Second)
		old := <-s.asked
		s.kill()
		s = t.accept(host)
		synctest.Wait()
		if t.table.Group(serving.Definition{ModelID: v1}).Len() != 0 {
			t.Fatal("the old connection's announcement is still in force")
		}
		s.announce(ready(7, v1))
		in, _ := t.ask(t.target(v1), time.Second)
		if again := <-s.asked; again.Batch == old.Batch {
			t.Error("a batch number was used twice")
		}
		s.reply(rpc.ReplyHead{Batch: old.Batch}, 0, output(1))
		if in.len() != 0 {
			t.Error("an answer to a question of the old connection reached a new one")
		}
	})
}

// What the next redial waits for grows to redialMax, also when the peer is there
// and hangs up at once.
func TestRedialing(t *testing.T) {
	for name, reachable := range map[string]bool{"nobody listens": false, "the peer hangs up": true} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *rig) {
				if reachable {
					host := t.listen("a")
					go func() {
						for {
							select {
							case nc := <-host:
								nc.Close()
							case <-t.Context().Done():
								return
							}
						}
					}()
				}
				t.resolve("a")
				time.Sleep(time.Minute)
				t.wantBackoff(t.dialled())
				// Once the connection has held for a while, the next try is soon.
				host := t.listen("a")
				s := t.accept(host)
				time.Sleep(redialMax + 1)
				before := len(t.dialled())
				s.kill()
				time.Sleep(redialMin)
				synctest.Wait()
				if len(t.dialled()) != before+1 {
					t.Errorf("%d dials within %v of losing a good connection, want 1", len(t.dialled())-before, redialMin)
				}
				t.accept(host)
			})
		})
	}
}

func (r *rig) dialled() []time.Time {
	r.mu.Lock()
	defer r.mu.Unlock()
	return append([]time.Time(nil), r.dials...)
}

func (r *rig) wantBackoff(dials []time.Time) {
	r.Helper()
	wait := redialMin
	for i := range len(dials) - 1 {
		if gap := dials[i+1].Sub(dials[i]); gap < wait/2 || gap > wait {
			r.Errorf("dial %d came %v after the one before, want %v to %v", i+1, gap, wait/2, wait)
		}
		wait = min(2*wait, redialMax)
	}
	if len(dials) < 30 || len(dials) > 70 { // 1 to 2 seconds each, in a minute
		r.Errorf("%d dials in a minute", len(dials))
	}
}

func TestInFlightIsBounded(t *testing.T) {
	bubble(t, func(t *rig) {
		s, target := t.connected()
		in := &inbox{T: t.T, from: target}
		ask := func() *serving.Failure {
			_, failure := target.Ask(in, &rpc.Ask{Budget: time.Second}, serving.Input{Type: serving.Doubles}, time.Now())
			return failure
		}
		for i := range maxInFlight {
			if failure := ask(); failure != nil {
				t.Fatalf("question %d: %v", i, failure)
			}
		}
		if failure := ask(); failure == nil || failure.Cause != serving.RefusedFull {
			t.Fatalf("one more: %v", failure)
		}
		s.reply(rpc.ReplyHead{Batch: (<-s.asked).Batch}, 0, output(1))
		if failure := ask(); failure != nil {
			t.Errorf("after an answer: %v", failure)
		}
		if failure := ask(); failure == nil {
			t.Error("the bound has moved")
		}
		if got := t.table.Replicas()[0].InFlight; got != maxInFlight {
			t.Errorf("%d in flight", got)
		}
	})
}

func TestAnInputBeyondThePeersLimitIsRefusedHere(t *testing.T) {
	bubble(t, func(t *rig) {
		host := t.listen("a")
		t.resolve("a")
		nc := <-host
		small := sidecarHello
		small.MaxFrame = rpc.MinMaxFrame
		conn, err := rpc.Accept(t.Context(), nc, small, nil)
		require.NoError(t, err)
		go conn.Run(t.Context(), func(rpc.Frame) error { return nil })
		require.NoError(t, conn.Send(rpc.KindAnnounce, 0, rpc.AppendAnnounce(nil, ready(1, v1))))
		synctest.Wait()
		in := &inbox{T: t.T, from: t.target(v1)}
		_, failure := in.from.Ask(in, &rpc.Ask{}, serving.Input{Type: serving.Bytes, Data: make([]byte, rpc.MinMaxFrame)}, time.Now())
		if failure == nil || failure.Cause != serving.ContainerError || in.len() != 0 {
			t.Errorf("got %v, and %d answers", failure, in.len())
		}
		if st := t.table.Replicas()[0]; st.InFlight != 0 || !st.Connected {
			t.Errorf("afterwards %+v", st)
		}
	})
}

func TestCancelIsSentOnceForAnOpenQuestionOnly(t *testing.T) {
	bubble(t, func(t *rig) {
		s, target := t.connected()
		in, number := t.ask(target, time.Second)
		target.Cancel(number)
		if c := <-s.cancels; c != (rpc.Cancel{Batch: number, Index: 0}) {
			t.Errorf("cancelled %+v, want question %d", c, number)
		}
		s.reply(rpc.ReplyHead{Batch: number}, 0, rpc.Answer{Status: rpc.StatusCancelled})
		in.one()
		target.Cancel(number) // answered
		target.Cancel(number + 1)
		synctest.Wait()
		s.kill()
		synctest.Wait()
		target.Cancel(number)
		if len(s.cancels) != 0 {
			t.Errorf("%d more were cancelled", len(s.cancels))
		}
	})
}

func TestTheTokenIsShownAndARefusalIsBorne(t *testing.T) {
	bubble(t, func(t *rig) {
		host := t.listen("a")
		t.lists <- []serving.Endpoint{{Replica: "a", Addr: "a", Token: []byte("wrong")}}
		guarded := sidecarHello
		guarded.Token = []byte("right")
		if _, err := rpc.Accept(t.Context(), <-host, guarded, nil); err == nil {
			t.Fatal("a wrong token was taken")
		}
		t.lists <- []serving.Endpoint{{Replica: "a", Addr: "a", Token: []byte("right")}}
		nc := <-host
		for { // the old one may have dialled once more
			conn, err := rpc.Accept(t.Context(), nc, guarded, nil)
			if err == nil {
				go conn.Run(t.Context(), func(rpc.Frame) error { return nil })
				break
			}
			nc = <-host
		}
		synctest.Wait()
		if st := t.table.Replicas(); len(st) != 1 || !st[0].Connected {
			t.Errorf("got %+v", st)
		}
	})
}

// A peer that says nothing holds nobody up forever: neither before its HELLO nor
// once it is connected and asked.
func TestASilentPeerIsGivenUp(t *testing.T) {
	bubble(t, func(t *rig) {
		host := t.listen("a")
		t.resolve("a")
		start := time.Now()
		mute := <-host
		go io.Copy(io.Discard, mute)
		nc := <-host // the next try
		if took := time.Since(start); took > 6*time.Second {
			t.Errorf("a peer without a HELLO was given up after %v", took)
		}
		if _, err := rpc.Accept(t.Context(), nc, sidecarHello, nil); err != nil {
			t.Fatal(err)
		}
		if _, err := nc.Write(rpc.AppendFrame(nil, rpc.KindAnnounce, 0, rpc.AppendAnnounce(nil, ready(7, v1)))); err != nil {
			t.Fatal(err)
		}
		go io.Copy(io.Discard, nc) // reads PREDICT and PING, and answers neither
		synctest.Wait()
		in, _ := t.ask(t.target(v1), time.Minute)
		time.Sleep(7 * time.Second)
		if a := in.one(); a.Status != rpc.StatusContainer || !strings.Contains(string(a.Message), "silent") {
			t.Errorf("it ended with %v %q", a.Status, a.Message)
		}
		if t.table.Group(serving.Definition{ModelID: v1}).Len() != 0 {
			t.Error("it is still asked")
		}
	})
}

func TestAskingWhileConnectionsComeAndGo(t *testing.T) {
	bubble(t, func(t *rig) {
		host := t.listen("a")
		t.resolve("a")
		ctx, stop := context.WithCancel(t.Context())
		asking := make(chan struct{})
		count := &tally{}
		go func() {
			defer close(asking)
			for ctx.Err() == nil {
				if target := t.table.Group(serving.Definition{ModelID: v1}).Pick(0, nil, time.Now()); target != nil {
					if _, failure := target.Ask(count, &rpc.Ask{Budget: time.Second}, serving.Input{Type: serving.Doubles}, time.Now()); failure == nil {
						count.asked++
					}
				}
				time.Sleep(time.Millisecond)
			}
		}()
		for range 20 {
			s := t.accept(host)
			s.announce(ready(7, v1))
			time.Sleep(30 * time.Millisecond)
			for len(s.asked) > 5 { // answers some
				s.reply(rpc.ReplyHead{Batch: (<-s.asked).Batch}, 0, output(1))
			}
			s.kill()
			<-s.done
		}
		stop()
		<-asking
		synctest.Wait()
		if count.asked < 200 || count.answered.Load() != count.asked {
			t.Errorf("%d asked, %d answered", count.asked, count.answered.Load())
		}
	})
}

// tally counts the answers to many questions.
type tally struct {
	asked    int64
	answered atomic.Int64
}

func (*tally) Part(*Target, *rpc.Answer) {}

func (c *tally) Answered(*Target, *rpc.Answer, time.Duration, time.Time) { c.answered.Add(1) }
