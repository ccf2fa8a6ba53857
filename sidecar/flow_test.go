package sidecar

import (
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/topsail-serving/topsail/rpc"
	"github.com/topsail-serving/topsail/serving"
	"github.com/topsail-serving/topsail/sidecar/batch"
	"github.com/topsail-serving/topsail/sidecar/queue"
	"github.com/topsail-serving/topsail/test/require"
)

// parked is what the outputs take that wait for others, in all pools.
func (r *rig) parked() (n int64) {
	r.metrics.gauges.mu.Lock()
	defer r.metrics.gauges.mu.Unlock()
	for p := range r.metrics.gauges.pools {
		n += p.parked.Load()
	}
	return n
}

// wide answers each input with an output of so many bytes, the last ones its tag.
func wide(size int) func(*model, uint64, [][]byte) {
	return func(m *model, batch uint64, in [][]byte) {
		for i, payload := range in {
			data := slices.Concat(make([]byte, size-8), payload[len(payload)-8:])
			m.reply(batch, 0, rpc.Answer{Index: uint32(i), Payload: rpc.AppendInput(nil, serving.Input{Type: serving.Doubles, Data: data})})
		}
		m.reply(batch, rpc.FlagEnd)
	}
}

const wideOutput = 4 << 20

// joinRig is a pipeline whose stage wide is quick, and parks its outputs until the stage
// other has done the same input; rank joins both.
func joinRig(t *testing.T, other func(*model, uint64, [][]byte)) (*rig, *gateway) {
	r := newRig(t, Config{})
	one := serving.StageBatch{Strategy: "fixed", MaxSize: 1}
	text := described(serving.Stage{Name: "wide", Batch: one}, serving.Stage{Name: "other", After: []string{serving.QueryInput}, Batch: one},
		serving.Stage{Name: "rank", After: []string{"wide", "other", serving.QueryInput}, Batch: one})
	r.worker("wide", text, wide(wideOutput))
	r.worker("rank", text, wide(8))
	r.worker("other", text, other)
	pass(0)
	g := r.gateway()
	pass(0)
	return r, g
}

func TestWhatIsParkedForAJoinIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, g := joinRig(t, slow(time.Second))
		most := between.Bytes / wideOutput
		for n := range 2 * most {
			g.ask(0, -1, tagged(float64(n)))
			pass(ms)
		}
		if n := r.parked(); n < int64(between.Bytes) || n > int64(between.Bytes+wideOutput) {
			t.Errorf("%d bytes are parked, of %d", n, between.Bytes)
		}
		if s := g.statuses(); len(s) != 1 || s[rpc.StatusFull] != most {
			t.Errorf("%v, want %d refused", s, most)
		}
		pass(time.Hour)
		b := g.ask(0, -1, tagged(-1))
		pass(time.Minute)
		if a, s := g.answer(b), g.statuses(); a.Status != rpc.StatusOK || s[rpc.StatusOK] != most+1 {
			t.Errorf("in the end %v, and then %v %s", s, a.Status, a.Message)
		}
		if n := r.parked(); n != 0 {
			t.Errorf("%d bytes are parked for nobody", n)
		}
		r.end()
	})
}

// However a query ends, it gives back what it has parked.
func TestWhatIsParkedIsGivenBack(t *testing.T) {
	dies := func(m *model, _ uint64, _ [][]byte) { m.nc.Close() }
	for _, c := range []struct {
		name   string
		other  func(*model, uint64, [][]byte)
		budget time.Duration
		cancel bool
		want   rpc.Status
	}{
		{"an answer", echo, -1, false, rpc.StatusOK},
		{"an error", ends(rpc.StatusModelError, "ValueError: no"), -1, false, rpc.StatusModelError},
		{"a death, and no worker after it", dies, -1, false, rpc.StatusNoContainer},
		{"a deadline", echo, 500 * ms, false, rpc.StatusExpired},
		{"a cancellation", echo, -1, true, rpc.StatusCancelled},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r, g := joinRig(t, func(m *model, batch uint64, in [][]byte) { time.Sleep(time.Second); c.other(m, batch, in) })
				g.ask(0, -1, tagged(1)) // which keeps the other stage busy
				pass(ms)
				b := g.ask(0, c.budget, tagged(2))
				pass(ms)
				if n := r.parked(); n < 2*wideOutput {
					t.Errorf("%d bytes are parked", n)
				}
				if c.cancel {
					g.conn.Send(rpc.KindCancel, 0, rpc.AppendCancel(nil, rpc.Cancel{Batch: b, Index: rpc.CancelAll}))
				}
				pass(time.Minute)
				if n := r.parked(); n != 0 {
					t.Errorf("%d bytes are parked for nobody", n)
				}
				if a := g.answer(b); a.Status != c.want {
					t.Errorf("%v %s, want %v", a.Status, a.Message, c.want)
				}
				r.end()
			})
		})
	}
}

// What is retried was admitted, and is not refused because another stage is away.
func TestARetryAtAnEntryIsNotRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, Config{})
		text := described(serving.Stage{Name: "first", Idempotent: true}, serving.Stage{Name: "second"})
		r.worker("first", text, func(m *model, _ uint64, _ [][]byte) { time.Sleep(10 * ms); m.nc.Close() })
		second := r.worker("second", text, stamps(2, 0))
		pass(0)
		g := r.gateway()
		pass(0)
		b := g.ask(0, 5*time.Second, tagged(1))
		pass(ms) // the worker has it
		r.worker("first", text, stamps(1, 0))
		second.nc.Close()
		pass(100 * ms)
		if g.announced[0] != rpc.StateLoading {
			t.Errorf("without the second stage the pool is in state %d", g.announced[0])
		}
		r.worker("second", text, stamps(2, 0))
		pass(time.Second)
		if a := g.answer(b); a.Status != rpc.StatusOK {
			t.Errorf("%v %s", a.Status, a.Message)
		}
		r.end()
	})
}

// A query that one entry stage has answered is not refused by the other.
func TestARefusalAfterTheAnswerIsNone(t *testing.T) {
	pipe := newPipeline("two", serving.Pipeline{{Name: "a"}, {Name: "b", After: []string{serving.QueryInput}}})
	admits := func(*queue.Item, queue.Load) error { return nil }
	pipe.stages[0].queue = queue.New(unbounded, admits, nil)
	pipe.stages[1].queue = queue.New(unbounded, func(it *queue.Item, _ queue.Load) error {
		it.From.(*flow).end() // at this very moment
		return errNoContainer
	}, nil)
	if err := pipe.enter(&pool{}, &queue.Item{Ask: rpc.Ask{Payload: tagged(1)}}); err != nil {
		t.Errorf("it is refused once more: %v", err)
	}
}

// Whoever sees that the last worker is gone sees when it went, and keeps what waits.
func TestAStageWithoutWorkersIsOpenAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for range 10_000 {
			s := newStage(serving.Stage{Name: "s"}, serving.BatchSpec{})
			s.changed = func() {}
			s.setBatchers(func([]*batch.Batcher) []*batch.Batcher { return make([]*batch.Batcher, 1) })
			seen := make(chan error)
			go func() {
				for s.staffed() {
				}
				seen <- s.open()
			}()
			s.setBatchers(func([]*batch.Batcher) []*batch.Batcher { return nil })
			require.NoError(t, <-seen)
		}
	})
}
