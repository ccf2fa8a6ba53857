package sidecar

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/topsail-serving/topsail/rpc"
	"github.com/topsail-serving/topsail/serving"
)

// A query to one model of a container that runs a long batch of another expires, and the
// container lives on.
func TestAModelThatWaitsForItsTurnKillsNobody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, Config{Models: []*serving.Version{version("m", nil), version("b", nil)}})
		m := r.model(slow(15 * time.Second))
		m.announce(2, "b", rpc.StateReady)
		g := r.gateway()
		pass(0)
		long := g.ask(1, 30*time.Second, tagged(1))
		pass(ms)
		short := g.ask(0, 100*ms, tagged(2))
		pass(40 * time.Second)
		if a := g.answer(long); a.Status != rpc.StatusOK {
			t.Errorf("the long batch: %v %s", a.Status, a.Message)
		}
		if a := g.answer(short); a.Status != rpc.StatusExpired {
			t.Errorf("what waited for it: %v %s", a.Status, a.Message)
		}
		if r.stalled != 0 || m.dead() {
			t.Errorf("%d containers stalled, dead: %v", r.stalled, m.dead())
		}
		r.end()
	})
}
