package route

import (
	"math/rand/v2"
	"reflect"
	"testing"
	"testing/synctest"

	"github.com/topsail-serving/topsail/rpc"
	"github.com/topsail-serving/topsail/serving"
)

func label(x float64, user string) rpc.Feedback {
	input := serving.Input{Type: serving.Doubles, Data: make([]byte, 8)}
	return rpc.Feedback{Input: rpc.AppendInput(nil, input), Label: rpc.AppendPayload(nil, serving.Number(x)), User: []byte(user), QueryID: 9}
}

// heard is the only feedback that a sidecar got.
func (s *sidecar) heard() (model uint32, list []rpc.Feedback) {
	s.Helper()
	synctest.Wait()
	if len(s.taught) != 1 {
		s.Fatalf("%d frames of feedback came, want 1", len(s.taught))
	}
	model, list, err := rpc.ParseFeedback(<-s.taught)
	if err != nil {
		s.Error(err)
	}
	return model, list
}

func TestFeedbackGoesToEveryReadyReplica(t *testing.T) {
	bubble(t, func(r *rig) {
		a, b, c := r.listen("a"), r.listen("b"), r.listen("c")
		r.resolve("a", "b", "c")
		first, second, loading := r.accept(a), r.accept(b), r.accept(c)
		first.announce(ready(7, v1))
		second.announce(ready(3, v1))
		loading.announce(rpc.Announcement{ID: 1, State: rpc.StateLoading, Model: v1})
		group := r.table.Group(serving.Definition{ModelID: v1})
		want := []rpc.Feedback{label(1, "ann"), label(2, "bob")}
		if n := group.Feedback(want...); n != 2 {
			t.Errorf("it was sent to %d replicas, want 2", n)
		}
		for s, id := range map[*sidecar]uint32{first: 7, second: 3} {
			if model, list := s.heard(); model != id || !reflect.DeepEqual(list, want) {
				t.Errorf("model %d got %v, want model %d and %v", model, list, id, want)
			}
		}
		if len(loading.taught) != 0 {
			t.Error("a replica that is not ready got feedback")
		}
		second.kill()
		<-second.done
		synctest.Wait()
		if n := group.Feedback(want...); n != 1 {
			t.Errorf("with one replica gone it was sent to %d, want 1", n)
		}
		first.heard()
	})
}

func TestFeedbackForNobody(t *testing.T) {
	var none *Group
	if n := none.Feedback(label(1, "")); n != 0 {
		t.Errorf("a nil group sent it to %d", n)
	}
	if n := standing(3).Feedback(label(1, "")); n != 0 {
		t.Errorf("replicas that are not connected got it: %d", n)
	}
	bubble(t, func(r *rig) {
		s, _ := r.connected()
		if n := r.table.Group(serving.Definition{ModelID: v1}).Feedback(); n != 0 {
			t.Errorf("no feedback was sent to %d", n)
		}
		synctest.Wait()
		if len(s.taught) != 0 {
			t.Error("an empty frame was sent")
		}
	})
}

// A replica that does not read costs the caller no time and little memory.
func TestFeedbackForAReplicaThatDoesNotReadIsBounded(t *testing.T) {
	bubble(t, func(r *rig) {
		s, _ := r.connected()
		s.stuck = make(chan struct{})
		noise := make([]byte, 100_000) // which no compression makes smaller
		rand.NewChaCha8([32]byte{1}).Read(noise)
		large := rpc.Feedback{Input: rpc.AppendPayload(nil, serving.Value{DType: serving.Opaque, Data: noise}), Label: label(1, "").Label}
		sent := 0
		for range 100 {
			sent += r.table.Group(serving.Definition{ModelID: v1}).Feedback(large)
			synctest.Wait()
		}
		if most := feedbackAhead/100_000 + 3; sent < 1 || sent > most {
			t.Errorf("%d of 100 were taken, want 1 to %d", sent, most)
		}
		close(s.stuck)
		synctest.Wait()
		if len(s.taught) != sent {
			t.Errorf("%d arrived of %d", len(s.taught), sent)
		}
		if n := r.table.Group(serving.Definition{ModelID: v1}).Feedback(large); n != 1 {
			t.Error("it gets none though it reads again")
		}
	})
}
