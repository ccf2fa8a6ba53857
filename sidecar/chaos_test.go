package sidecar

import (
	"math/rand/v2"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/topsail-serving/topsail/rpc"
	"github.com/topsail-serving/topsail/serving"
	"github.com/topsail-serving/topsail/test/wait"
)

// mad echoes most of its batches, and ends in some way in the others.
func mad(r *rand.Rand) func(*model, uint64, [][]byte) {
	var mu sync.Mutex
	return func(m *model, batch uint64, in [][]byte) {
		mu.Lock()
		mood := r.IntN(40)
		mu.Unlock()
		switch mood {
		case 0:
			m.nc.Close()
		case 1:
			m.nc.Write(rpc.AppendFrame(nil, rpc.KindReply, rpc.FlagEnd, make([]byte, 64))[:30])
			m.nc.Close()
		case 2:
			m.reply(batch, rpc.FlagEnd) // all are left out
		case 3:
			m.reply(batch, 0, rpc.Answer{Payload: in[0]})
			m.nc.Close()
		case 4:
			m.reply(batch, 0, rpc.Answer{Payload: in[0]})
			m.reply(batch, rpc.FlagEnd, rpc.Answer{Payload: in[0]})
		case 5:
			m.conn.Send(rpc.KindDrain, 0, nil)
			echo(m, batch, in)
			m.conn.Send(rpc.KindBye, 0, rpc.AppendBye(nil, "done"))
		case 6:
			echo(m, batch+1, in)
		case 7:
			m.announce(1, "m", rpc.StateLoading)
			echo(m, batch, in)
			m.announce(1, "m", rpc.StateReady)
		default:
			echo(m, batch, in)
		}
	}
}

// Thousands of queries from four gateways, on three containers that die all the
// time: each query is answered once, and with its own output.
func TestChaos(t *testing.T) {
	const gateways, containers, each, window = 4, 3, 2500, 64
	before := runtime.NumGoroutine()
	t.Run("", func(t *testing.T) {
		r := newSocketRig(t, Config{Models: []*serving.Version{version("m", func(v *serving.Version) { v.Batch.MaxSize = 8 })}})
		quit := make(chan struct{})
		var models sync.WaitGroup
		for i := range containers {
			models.Go(func() {
				random := rand.New(rand.NewPCG(1, uint64(i)))
				for {
					m, err := connect(t, r.dial.container(), hello(rpc.RoleContainer, ""))
					if err != nil {
						t.Error(err)
						return
					}
					m.do(mad(random))
					m.announce(1, "m", rpc.StateReady)
					select {
					case <-m.gone:
					case <-quit:
						m.nc.Close()
						return
					}
				}
			})
		}
		var all [gateways]*gateway
		var asking sync.WaitGroup
		for i := range all {
			g := r.gateway()
			all[i] = g
			asking.Go(func() {
				wait.Until(t, "the model is ready", func() bool { return g.state(0) == rpc.StateReady })
				for n := range each {
					if n%window == 0 {
						wait.Until(t, "the queries of the last window are answered", func() bool { return g.unanswered() == 0 })
					}
					budget := time.Duration(-1)
					if n%2 == 0 {
						budget = 200 * ms
					}
					batch := g.ask(0, budget, tagged(float64(i*each+n)))
					if n%16 == 0 {
						g.conn.Send(rpc.KindCancel, 0, rpc.AppendCancel(nil, rpc.Cancel{Batch: batch, Index: rpc.CancelAll}))
					}
				}
			})
		}
		asking.Wait()
		total := map[rpc.Status]int{}
		for _, g := range all {
			wait.Until(t, "every query is answered", func() bool { return g.unanswered() == 0 })
			for status, n := range g.statuses() {
				total[status] += n
			}
		}
		t.Log(total)
		if total[rpc.StatusOK] < gateways*each/4 || total[rpc.StatusContainer] == 0 {
			t.Errorf("%v: that was no test", total)
		}
		for _, odd := range []rpc.Status{rpc.StatusModelError, rpc.StatusBadInput, rpc.StatusUnknownModel, rpc.StatusDraining, rpc.StatusFull} {
			if total[odd] > 0 {
				t.Errorf("%d queries got %v", total[odd], odd)
			}
		}
		close(quit)
		models.Wait()
		r.end()
	})
	wait.Until(t, "no goroutine is left", func() bool { return runtime.NumGoroutine() <= before })
}
