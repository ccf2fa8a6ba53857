package route

import (
	"errors"
	"io"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/topsail-serving/topsail/rpc"
	"github.com/topsail-serving/topsail/serving"
)

// Frames that break the protocol end the connection; the peer hears why, and what
// was in flight fails with it instead of getting a wrong answer.
func TestWrongFramesEndTheConnection(t *testing.T) {
	head := func(batch uint64, count int) []byte {
		return rpc.AppendReplyHead(nil, rpc.ReplyHead{Batch: batch, Count: count})
	}
	second := output(1)
	second.Index = 1
	tests := map[string]struct {
		send func(s *sidecar, batch uint64)
		why  string // in the BYE, or "" when there may be none
	}{
		"an index beyond the batch": {func(s *sidecar, batch uint64) { s.reply(rpc.ReplyHead{Batch: batch}, 0, second) }, "index"},
		"a reply cut short":         {func(s *sidecar, batch uint64) { s.send(rpc.KindReply, 0, head(batch, 1)) }, "REPLY"},
		"an empty reply frame":      {func(s *sidecar, batch uint64) { s.send(rpc.KindReply, 0, nil) }, "REPLY"},
		"bytes after the entries":   {func(s *sidecar, batch uint64) { s.send(rpc.KindReply, 0, append(head(batch, 0), 1)) }, "REPLY"},
		"an unknown status":         {func(s *sidecar, batch uint64) { s.reply(rpc.ReplyHead{Batch: batch}, 0, rpc.Answer{Status: 99}) }, "status"},
		"a broken announcement":     {func(s *sidecar, batch uint64) { s.send(rpc.KindAnnounce, 0, []byte{1}) }, "ANNOUNCE"},
		"a frame of a gateway":      {func(s *sidecar, batch uint64) { s.send(rpc.KindPredict, 0, nil) }, "not expected"},
		"an unknown kind":           {func(s *sidecar, batch uint64) { s.send(99, 0, nil) }, "not expected"},
		"a frame that is too large": {func(s *sidecar, batch uint64) { s.raw([]byte{255, 255, 255, 255, 4, 0, 0, 0}) }, "size"},
		"bytes of something else":   {func(s *sidecar, batch uint64) { s.raw([]byte("HTTP/1.1 400 Bad Request\r\n\r\n")) }, ""},
		"half a frame and an end": {func(s *sidecar, batch uint64) {
			s.raw([]byte{100, 0, 0, 0, 4, 0})
			s.nc.Close()
		}, ""},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *rig) {
				s, target := t.connected()
				in, _ := t.ask(target, time.Second)
				test.send(s, (<-s.asked).Batch)
				a := in.one()
				if a.Status != rpc.StatusContainer || len(a.Message) == 0 {
					t.Errorf("the question ended with %v %q", a.Status, a.Message)
				}
				<-s.done
				if _, bye := errors.AsType[*rpc.ByeError](s.why); test.why != "" && (!bye || !strings.Contains(s.why.Error(), test.why)) {
					t.Errorf("the peer heard %v, want %q in it", s.why, test.why)
				}
				if !strings.Contains(string(a.Message), test.why) {
					t.Errorf("the question failed with %q, want %q in it", a.Message, test.why)
				}
				s = t.accept(t.listen("a")) // and dials again
				s.announce(ready(7, v1))
				t.target(v1)
			})
		})
	}
}

// raw writes bytes that are no frame.
func (s *sidecar) raw(b []byte) {
	if _, err := s.nc.Write(b); err != nil && !errors.Is(err, io.ErrClosedPipe) {
		s.Error(err)
	}
	synctest.Wait()
}

// Replies that are allowed, and must not be taken for an answer to anything.
func TestRepliesThatAnswerNothing(t *testing.T) {
	bubble(t, func(t *rig) {
		s, target := t.connected()
		in, _ := t.ask(target, time.Second)
		batch := (<-s.asked).Batch
		more := output(1)
		more.More = true
		s.reply(rpc.ReplyHead{Batch: batch + 1}, 0, output(666)) // unknown
		s.reply(rpc.ReplyHead{Batch: 0}, rpc.FlagEnd, output(666))
		s.reply(rpc.ReplyHead{Batch: batch}, 0)       // no entry
		s.reply(rpc.ReplyHead{Batch: batch}, 0, more) // not the last entry
		if in.len() != 0 {
			t.Fatalf("%d answers", in.len())
		}
		s.reply(rpc.ReplyHead{Batch: batch, Service: 3 * time.Millisecond}, rpc.FlagEnd, output(2))
		s.reply(rpc.ReplyHead{Batch: batch}, 0, output(3)) // once more
		a := in.one()
		if out, err := a.Output(); err != nil || string(out.JSON) != "2.0" {
			t.Errorf("got %v, %v", out, err)
		}
		if in.service != 3*time.Millisecond {
			t.Errorf("the model took %v", in.service)
		}
	})
}

func TestABatchThatEndsWithoutAnAnswerFails(t *testing.T) {
	bubble(t, func(t *rig) {
		s, target := t.connected()
		in, _ := t.ask(target, time.Second)
		s.reply(rpc.ReplyHead{Batch: (<-s.asked).Batch}, rpc.FlagEnd)
		if a := in.one(); a.Status != rpc.StatusContainer || string(a.Message) != "the replica ended the batch without an answer" {
			t.Errorf("it ended with %v %q", a.Status, a.Message)
		}
	})
}

// A reply can get lost on a connection that lives. Its question must not stay for
// ever, nor end before its output would be of no more use.
func TestAQuestionThatIsNeverAnsweredIsGivenUp(t *testing.T) {
	bubble(t, func(t *rig) {
		_, target := t.connected()
		in, _ := t.ask(target, 10*time.Second)
		time.Sleep(10*time.Second + overdueAfter)
		synctest.Wait()
		if in.len() != 0 {
			t.Fatal("it was given up early")
		}
		time.Sleep(2 * sweepEvery)
		if a := in.one(); a.Status != rpc.StatusContainer || string(a.Message) != "the replica did not answer" {
			t.Errorf("it ended with %v %q", a.Status, a.Message)
		}
		if st := t.table.Replicas()[0]; st.InFlight != 0 || !st.Connected {
			t.Errorf("afterwards %+v", st)
		}
	})
}

func TestRepliesTeachTheTable(t *testing.T) {
	bubble(t, func(t *rig) {
		s, target := t.connected()
		answer := func(after time.Duration, a rpc.Answer) {
			_, number := t.ask(target, time.Second)
			time.Sleep(after)
			s.reply(rpc.ReplyHead{Batch: number, Wait: 3 * time.Millisecond}, 0, a)
		}
		answer(20*time.Millisecond, output(1))
		if st := t.table.Replicas()[0]; st.Latency != 20*time.Millisecond || st.Wait != 3*time.Millisecond || st.Ejected {
			t.Errorf("after an output: %+v", st)
		}
		for _, status := range []rpc.Status{rpc.StatusModelError, rpc.StatusBadInput, rpc.StatusFull, rpc.StatusLate, rpc.StatusExpired, rpc.StatusDraining, rpc.StatusUnknownModel, rpc.StatusCancelled} {
			for range ejectAfter {
				answer(0, rpc.Answer{Status: status})
			}
			if st := t.table.Replicas()[0]; st.Ejected || st.Latency != 20*time.Millisecond {
				t.Fatalf("after %v: %+v", status, st)
			}
		}
		for _, status := range []rpc.Status{rpc.StatusContainer, rpc.StatusNoContainer, rpc.StatusContainer} {
			answer(0, rpc.Answer{Status: status})
		}
		if st := t.table.Replicas()[0]; !st.Ejected {
			t.Errorf("after %d failures: %+v", ejectAfter, st)
		}
		answer(0, rpc.Answer{Status: rpc.StatusModelError}) // the container works
		if st := t.table.Replicas()[0]; st.Ejected {
			t.Errorf("after an answer: %+v", st)
		}
	})
}

// A replica that does not know of apps is not told which one asks.
func TestTheAppGoesToReplicasThatShareByIt(t *testing.T) {
	for app, features := range map[string]rpc.Features{"": 0, "wine 2.5 0.125 2": rpc.FeatureApps} {
		bubble(t, func(t *rig) {
			t.offers = features
			s, target := t.connected()
			ask := &rpc.Ask{Budget: -1, App: []byte("wine"), Weight: 2.5, MinShare: 0.125, Priority: 2}
			if _, failure := target.Ask(&inbox{T: t.T, from: target}, ask, serving.Input{Type: serving.Doubles}, time.Now()); failure != nil {
				t.Fatal(failure)
			}
			synctest.Wait()
			if got := <-s.apps; got != app {
				t.Errorf("a replica with the features %v is told %q, want %q", features, got, app)
			}
		})
	}
}
