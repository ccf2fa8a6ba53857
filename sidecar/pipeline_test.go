package sidecar

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/topsail-serving/topsail/rpc"
	"github.com/topsail-serving/topsail/serving"
	"github.com/topsail-serving/topsail/sidecar/queue"
	"github.com/topsail-serving/topsail/test/require"
)

// described is the text by which workers announce a pipeline.
func described(stages ...serving.Stage) []byte {
	return []byte(serving.Pipeline(stages).JSON())
}

// worker starts a worker of a stage of model m, which treats its batches so.
func (r *rig) worker(stage string, pipeline []byte, treat func(*model, uint64, [][]byte)) *model {
	r.t.Helper()
	h := hello(rpc.RoleContainer, "")
	h.Features |= rpc.FeatureStages
	m, err := connect(r.t, r.dial.container(), h)
	require.NoError(r.t, err)
	m.do(treat)
	m.stageOf(stage, pipeline, rpc.StateReady)
	return m
}

func (m *model) stageOf(stage string, pipeline []byte, state rpc.State) {
	a := rpc.Announcement{ID: 1, State: state, Model: serving.ModelID{Model: "m", Version: "1"}, Stage: stage, Pipeline: pipeline}
	m.conn.Send(rpc.KindAnnounce, 0, rpc.AppendAnnounce(nil, a))
}

// numbers are the doubles of all values of a payload, the last one once: it is the
// tag by which gateways know their queries.
func numbers(t *testing.T, payload []byte) []float64 {
	t.Helper()
	values, err := rpc.ParsePayload(payload)
	if err != nil {
		t.Error(err)
		return []float64{math.NaN()}
	}
	var all []float64
	for i, v := range values {
		for b := v.Data; len(b) >= 8; b = b[8:] {
			if len(b) > 8 || i == len(values)-1 {
				all = append(all, math.Float64frombits(binary.LittleEndian.Uint64(b)))
			}
		}
	}
	return all
}

// stamp answers an input with its numbers behind a number of the stage's own.
func stamp(t *testing.T, stage float64, payload []byte) []byte {
	var data []byte
	for _, x := range append([]float64{stage}, numbers(t, payload)...) {
		data = binary.LittleEndian.AppendUint64(data, math.Float64bits(x))
	}
	return rpc.AppendInput(nil, serving.Input{Type: serving.Doubles, Data: data})
}

// stamps is a worker that stamps, after a while.
func stamps(stage float64, takes time.Duration) func(*model, uint64, [][]byte) {
	return func(m *model, batch uint64, in [][]byte) {
		time.Sleep(takes)
		m.stampAll(stage, batch, in)
	}
}

func (m *model) stampAll(stage float64, batch uint64, in [][]byte) {
	answers := make([]rpc.Answer, len(in))
	for i := range in {
		answers[i] = rpc.Answer{Index: uint32(i), Payload: stamp(m.t, stage, in[i])}
	}
	m.reply(batch, rpc.FlagEnd, answers...)
}

// ends answers every input with a status.
func ends(status rpc.Status, message string) func(*model, uint64, [][]byte) {
	return func(m *model, batch uint64, in [][]byte) {
		answers := make([]rpc.Answer, len(in))
		for i := range in {
			answers[i] = rpc.Answer{Index: uint32(i), Status: status, Message: []byte(message)}
		}
		m.reply(batch, rpc.FlagEnd, answers...)
	}
}

func TestAQueryGoesThroughAllStages(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, Config{})
		text := described(serving.Stage{Name: "Scale"}, serving.Stage{Name: "Shift"})
		r.worker("Scale", text, stamps(1, 0))
		pass(0)
		g := r.gateway()
		pass(0)
		if g.announced[0] != rpc.StateLoading {
			t.Errorf("with one stage of two the pool is in state %d", g.announced[0])
		}
		r.worker("Shift", text, stamps(2, 0))
		pass(0)
		if g.announced[0] != rpc.StateReady {
			t.Errorf("with both stages the pool is in state %d", g.announced[0])
		}
		b := g.ask(0, time.Second, tagged(7), tagged(8))
		pass(time.Second)
		for i, a := range g.answers(b, 2) {
			if got, want := numbers(t, a.Payload), []float64{2, 1, float64(7 + i)}; a.Status != rpc.StatusOK || !slices.Equal(got, want) {
				t.Errorf("input %d: %v %s %v, want %v", i, a.Status, a.Message, got, want)
			}
		}
		r.end()
	})
}

func TestBranchesAreJoined(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, Config{})
		text := described(
			serving.Stage{Name: "decode"},
			serving.Stage{Name: "left", After: []string{"decode"}},
			serving.Stage{Name: "right", After: []string{"decode"}},
			serving.Stage{Name: "far", After: []string{"right"}},
			serving.Stage{Name: "rank", After: []string{"left", "far", serving.QueryInput}},
		)
		for i, stage := range []string{"decode", "left", "right", "far", "rank"} {
			r.worker(stage, text, stamps(float64(i+1), time.Duration(i)*ms))
		}
		pass(0)
		g := r.gateway()
		pass(0)
		b := g.ask(0, time.Second, tagged(70))
		pass(time.Second)
		a := g.answer(b)
		if got, want := numbers(t, a.Payload), []float64{5, 2, 1, 4, 3, 1, 70}; a.Status != rpc.StatusOK || !slices.Equal(got, want) {
			t.Errorf("%v %s: %v, want %v", a.Status, a.Message, got, want)
		}
		r.end()
	})
}

func TestAnErrorEndsItsOwnQueryOnly(t *testing.T) {
	for _, c := range []struct {
		status rpc.Status
		want   string
	}{
		{rpc.StatusModelError, "stage second: ValueError: odd"},
		{rpc.StatusDropped, "stage second: ValueError: odd"},
	} {
		synctest.Test(t, func(t *testing.T) {
			r := newRig(t, Config{})
			text := described(serving.Stage{Name: "first", Batch: serving.StageBatch{Strategy: "fixed", MaxSize: 8}},
				serving.Stage{Name: "second", Batch: serving.StageBatch{Strategy: "fixed", MaxSize: 8}}, serving.Stage{Name: "third"})
			r.worker("first", text, stamps(1, ms))
			r.worker("second", text, func(m *model, batch uint64, in [][]byte) {
				answers := make([]rpc.Answer, len(in))
				for i := range in {
					answers[i] = rpc.Answer{Index: uint32(i), Payload: in[i]}
					if n := numbers(t, in[i]); int(n[len(n)-1])%2 == 1 {
						answers[i] = rpc.Answer{Index: uint32(i), Status: c.status, Message: []byte("ValueError: odd")}
					}
				}
				m.reply(batch, rpc.FlagEnd, answers...)
			})
			third := r.worker("third", text, stamps(3, 0))
			pass(0)
			g := r.gateway()
			pass(0)
			b := g.ask(0, time.Second, tagged(0), tagged(1), tagged(2), tagged(3))
			pass(time.Second)
			for i, a := range g.answers(b, 4) {
				// The gateway of these tests is one of before stages, to whom a drop is an error.
				if want := []rpc.Status{rpc.StatusOK, rpc.StatusModelError}[i%2]; a.Status != want {
					t.Errorf("input %d: %v %s", i, a.Status, a.Message)
				}
				if i%2 == 1 && string(a.Message) != c.want {
					t.Errorf("input %d: %q, want %q", i, a.Message, c.want)
				}
			}
			if _, inputs := third.seen(); inputs != 2 {
				t.Errorf("the third stage saw %d inputs, want 2", inputs)
			}
			r.end()
		})
	}
}

func TestTheInputsOfADeadWorkerFailOrAreRetriedOnce(t *testing.T) {
	for _, idempotent := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			r := newRig(t, Config{})
			text := described(serving.Stage{Name: "first"}, serving.Stage{Name: "second", Idempotent: idempotent})
			r.worker("first", text, stamps(1, 0))
			dies := func(m *model, _ uint64, _ [][]byte) { time.Sleep(ms); m.nc.Close() }
			r.worker("second", text, dies)
			pass(0)
			g := r.gateway()
			pass(0)
			b := g.ask(0, time.Second, tagged(1))
			synctest.Wait() // the only worker has it
			r.worker("second", text, stamps(2, 0))
			pass(10 * ms)
			more := g.ask(0, time.Second, tagged(2))
			pass(time.Second)
			first, second := g.answer(b), g.answer(more)
			if second.Status != rpc.StatusOK {
				t.Errorf("a query after the death: %v %s", second.Status, second.Message)
			}
			switch {
			case idempotent && first.Status != rpc.StatusOK:
				t.Errorf("an idempotent stage: %v %s", first.Status, first.Message)
			case !idempotent && (first.Status != rpc.StatusContainer || !strings.HasPrefix(string(first.Message), "stage second: the container disconnected")):
				t.Errorf("a stage that is not idempotent: %v %s", first.Status, first.Message)
			}
			r.end()
		})
	}
}

func TestWhatWaitsAtAStageWaitsForAWorkerThatComesBack(t *testing.T) {
	for _, back := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			r := newRig(t, Config{})
			text := described(serving.Stage{Name: "first"}, serving.Stage{Name: "second"})
			r.worker("first", text, stamps(1, 0))
			only := r.worker("second", text, func(m *model, _ uint64, _ [][]byte) { time.Sleep(ms); m.nc.Close() })
			pass(0)
			g := r.gateway()
			pass(0)
			had := g.ask(0, time.Minute, tagged(1))
			synctest.Wait() // the worker has it
			waits := g.ask(0, time.Minute, tagged(2))
			<-only.gone
			pass(0)
			if g.announced[0] != rpc.StateLoading {
				t.Errorf("without the second stage the pool is in state %d", g.announced[0])
			}
			refused := g.ask(0, time.Minute, tagged(3))
			pass(comesBack / 2)
			if back {
				r.worker("second", text, stamps(2, 0))
			}
			pass(comesBack)
			want := map[bool]rpc.Status{true: rpc.StatusOK, false: rpc.StatusNoContainer}[back]
			if a := g.answer(waits); a.Status != want {
				t.Errorf("what waited: %v %s, want %v", a.Status, a.Message, want)
			}
			if a, b := g.answer(had), g.answer(refused); a.Status != rpc.StatusContainer || b.Status != rpc.StatusNoContainer {
				t.Errorf("what the worker had: %v, and a new query: %v", a.Status, b.Status)
			}
			r.end()
		})
	}
}

func TestASecondDeathIsNotRetried(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, Config{})
		text := described(serving.Stage{Name: "only", Idempotent: true})
		seen := 0
		for range 3 {
			r.worker("only", text, func(m *model, _ uint64, _ [][]byte) { seen++; m.nc.Close() })
		}
		pass(0)
		g := r.gateway()
		pass(0)
		b := g.ask(0, time.Second, tagged(1))
		pass(time.Second)
		if a := g.answer(b); a.Status != rpc.StatusContainer || seen != 2 {
			t.Errorf("%v %s after %d workers, want 2", a.Status, a.Message, seen)
		}
		r.end()
	})
}

func TestBackPressureReachesAdmission(t *testing.T) {
	for _, own := range []struct{ first, second int }{{}, {second: 50}, {first: 30, second: 50}} {
		synctest.Test(t, func(t *testing.T) {
			r := newRig(t, Config{Limits: queue.Limits{Items: 500, Bytes: 1 << 20}})
			batch := serving.StageBatch{Strategy: "fixed", MaxSize: 10}
			text := described(serving.Stage{Name: "fast", Batch: batch, MaxQueue: own.first}, serving.Stage{Name: "slow", Batch: batch, MaxQueue: own.second})
			r.worker("fast", text, stamps(1, 0))
			r.worker("slow", text, stamps(2, time.Second))
			pass(0)
			g := r.gateway()
			pass(0)
			for range 300 {
				g.ask(0, -1, slices.Repeat([][]byte{tagged(1)}, 10)...)
				synctest.Wait()
			}
			// What runs, what is between the stages, and what waits before the first one.
			waits := cmp.Or(own.second, between.Items)
			most := 10 + waits + 2*10 + cmp.Or(own.first, 500)
			if full := g.statuses()[rpc.StatusFull]; full < 3000-most || full == 3000 {
				t.Errorf("%+v: %d of 3000 were refused, want at least %d", own, full, 3000-most)
			}
			pass(time.Hour)
			if s := g.statuses(); s[rpc.StatusOK]+s[rpc.StatusFull] != 3000 || s[rpc.StatusOK] < waits {
				t.Errorf("%+v: in the end %v", own, s)
			}
			r.end()
		})
	}
}

func TestDeadlinesAreKeptAtEveryStage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, Config{})
		text := described(serving.Stage{Name: "first"}, serving.Stage{Name: "second"})
		first := r.worker("first", text, stamps(1, 0))
		r.worker("second", text, stamps(2, 30*ms))
		pass(0)
		g := r.gateway()
		pass(0)
		for range 20 { // so that both are known
			g.ask(0, time.Second, tagged(1))
			pass(40 * ms)
		}
		first.do(stamps(1, 20*ms))
		b := g.ask(0, 40*ms, tagged(2))
		start := time.Now()
		pass(time.Second)
		a := g.answer(b)
		if a.Status != rpc.StatusLate || !strings.HasPrefix(string(a.Message), "stage second") || a.at.Sub(start) > 21*ms {
			t.Errorf("after %v: %v %s", a.at.Sub(start), a.Status, a.Message)
		}
		r.end()
	})
}

func TestWorkersOfAnotherPipelineWaitForTheEndOfThese(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, Config{})
		old, next := described(serving.Stage{Name: "a"}), described(serving.Stage{Name: "b"})
		worker := r.worker("a", old, stamps(1, 0))
		pass(0)
		other := r.worker("b", next, stamps(2, 0))
		if !other.dead() || !strings.Contains(other.why.Error(), "other stages than its connected containers") {
			t.Errorf("a worker of another pipeline: %v", other.why)
		}
		if plain := r.model(nil); !plain.dead() {
			t.Error("a container without stages joined workers with stages")
		}
		worker.nc.Close()
		pass(0)
		r.worker("b", next, stamps(2, 0))
		pass(0)
		g := r.gateway()
		pass(0)
		b := g.ask(0, time.Second, tagged(1))
		pass(time.Second)
		if a := g.answer(b); a.Status != rpc.StatusOK || numbers(t, a.Payload)[0] != 2 {
			t.Errorf("%v %s", a.Status, a.Message)
		}
		r.end()
	})
}

func TestAWrongPipelineIsRefused(t *testing.T) {
	for text, want := range map[string]string{
		`nonsense`:                    "not a JSON list",
		`[]`:                          "no stages",
		`[{"name":"a"}]`:              `stage "x", which is not in its pipeline`,
		`[{"name":"x"},{"name":"x"}]`: "another stage has this name",
		`[{"name":"y","after":["z"]},{"name":"x"}]`: "not a stage before it",
	} {
		synctest.Test(t, func(t *testing.T) {
			r := newRig(t, Config{})
			m := r.worker("x", []byte(text), echo)
			if !m.dead() || !strings.Contains(m.why.Error(), want) {
				t.Errorf("%s: %v, want %q", text, m.why, want)
			}
			r.end()
		})
	}
}

func TestACancelledQueryGoesNoFurther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, Config{})
		text := described(serving.Stage{Name: "first"}, serving.Stage{Name: "second"})
		r.worker("first", text, stamps(1, 0))
		second := r.worker("second", text, stamps(2, time.Second))
		pass(0)
		g := r.gateway()
		pass(0)
		g.ask(0, -1, tagged(1))
		b := g.ask(0, -1, tagged(2))
		synctest.Wait() // it waits before the second stage
		g.conn.Send(rpc.KindCancel, 0, rpc.AppendCancel(nil, rpc.Cancel{Batch: b, Index: rpc.CancelAll}))
		pass(time.Minute)
		if a := g.answer(b); a.Status != rpc.StatusCancelled {
			t.Errorf("%v %s", a.Status, a.Message)
		}
		if _, inputs := second.seen(); inputs != 1 {
			t.Errorf("the second stage saw %d inputs, want 1", inputs)
		}
		r.end()
	})
}

// Ten thousand queries through four stages with branches, whose workers die, fail and
// drop at random: each query is answered once, and with what belongs to it.
func TestPipelineChaos(t *testing.T) {
	const total, window = 10_000, 256
	r := newSocketRig(t, Config{})
	batch := serving.StageBatch{Strategy: "aimd", MaxSize: 16}
	stages := []serving.Stage{
		{Name: "decode", Batch: batch, Idempotent: true},
		{Name: "left", After: []string{"decode"}, Batch: batch},
		{Name: "right", After: []string{"decode"}, Batch: batch, Idempotent: true},
		{Name: "rank", After: []string{"left", "right"}, Batch: batch},
	}
	text := described(stages...)
	quit := make(chan struct{})
	var workers sync.WaitGroup
	for i := range 2 * len(stages) {
		workers.Go(func() {
			random := rand.New(rand.NewPCG(7, uint64(i)))
			stage := i / 2
			for {
				h := hello(rpc.RoleContainer, "")
				m, err := connect(t, r.dial.container(), h)
				if err != nil {
					t.Error(err)
					return
				}
				m.do(reckless(random, float64(stage+1)))
				m.stageOf(stages[stage].Name, text, rpc.StateReady)
				select {
				case <-m.gone:
				case <-quit:
					m.nc.Close()
					return
				}
			}
		})
	}
	g := newGateway(t, r.dial.gateway())
	tick := time.NewTicker(100 * time.Microsecond)
	defer tick.Stop()
	open := func() int {
		g.mu.Lock()
		defer g.mu.Unlock()
		return g.open
	}
	for n := 0; n < total; <-tick.C {
		// While a stage is away, queries would be refused as fast as they are asked.
		for ; n < total && open() < window && g.state(0) == rpc.StateReady; n++ {
			g.ask(0, 5*time.Second, tagged(float64(n)))
		}
	}
	for open() > 0 {
		<-tick.C
	}
	if n := r.parked(); n != 0 {
		t.Errorf("%d bytes are parked for nobody", n)
	}
	close(quit)
	workers.Wait()
	statuses := g.statuses()
	sum := 0
	for _, n := range statuses {
		sum += n
	}
	if sum != total || statuses[rpc.StatusOK] < total/2 || statuses[rpc.StatusModelError] == 0 {
		t.Errorf("%v of %d", statuses, total)
	}
	for batch, list := range g.replies {
		if a := list[len(list)-1]; a.Status == rpc.StatusOK {
			if got := numbers(t, a.Payload); len(got) != 6 || !slices.Equal(got[:5], []float64{4, 2, 1, 3, 1}) {
				t.Fatalf("query %d went by %v", batch, got)
			}
		}
	}
	g.conn.Send(rpc.KindBye, 0, rpc.AppendBye(nil, "done"))
	r.end()
}

// reckless stamps most of its batches, and dies, fails or drops in others.
func reckless(random *rand.Rand, stage float64) func(*model, uint64, [][]byte) {
	var mu sync.Mutex
	return func(m *model, batch uint64, in [][]byte) {
		mu.Lock()
		mood := random.IntN(60)
		mu.Unlock()
		switch mood {
		case 0:
			m.nc.Close()
		case 1:
			ends(rpc.StatusModelError, "ValueError: no")(m, batch, in)
		case 2:
			ends(rpc.StatusDropped, "not interesting")(m, batch, in)
		case 3:
			m.reply(batch, rpc.FlagEnd) // all are left out
		default:
			m.stampAll(stage, batch, in)
		}
	}
}

// times are how an input fared at its stages, in words.
func times(a reply) (words []string) {
	for s := range rpc.StageTimes(a.Stages) {
		word := fmt.Sprint(string(s.Name), " ", s.Took)
		if s.Ended {
			word += " ended"
		}
		words = append(words, word)
	}
	return words
}

// TestAnswersSayHowTheInputFared at each stage, with its waiting there; at those of
// branches besides, and where it ended.
func TestAnswersSayHowTheInputFared(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, Config{})
		text := described(serving.Stage{Name: "decode"}, serving.Stage{Name: "left", After: []string{"decode"}},
			serving.Stage{Name: "right", After: []string{"decode"}}, serving.Stage{Name: "rank", After: []string{"left", "right"}})
		r.worker("decode", text, func(m *model, batch uint64, in [][]byte) {
			time.Sleep(5 * ms)
			lie := rpc.AppendStageTime(nil, rpc.StageTime{Name: []byte("lie")})
			m.reply(batch, rpc.FlagEnd, rpc.Answer{Payload: stamp(m.t, 1, in[0]), Stages: lie})
		})
		r.worker("left", text, stamps(2, 10*ms))
		r.worker("right", text, stamps(3, 20*ms))
		r.worker("rank", text, func(m *model, batch uint64, in [][]byte) {
			time.Sleep(ms)
			if n := numbers(m.t, in[0]); n[len(n)-1] == 2 {
				m.reply(batch, rpc.FlagEnd, rpc.Answer{Status: rpc.StatusModelError, Message: []byte("ValueError: two")})
				return
			}
			m.stampAll(4, batch, in)
		})
		pass(0)
		g := r.gateway()
		pass(0)
		first := g.ask(0, time.Second, tagged(1))
		second := g.ask(0, time.Second, tagged(2)) // waits for the first, decode by decode
		pass(time.Second)
		a := g.answer(first)
		if got, want := times(a), []string{"decode 5ms", "left 10ms", "right 20ms", "rank 1ms"}; !slices.Equal(got, want) {
			t.Errorf("the first: %v, want %v", got, want)
		}
		b := g.answer(second)
		if got, want := times(b), []string{"decode 10ms", "left 15ms", "right 35ms", "rank 1ms ended"}; !slices.Equal(got, want) || b.Status != rpc.StatusModelError {
			t.Errorf("the second: %v %v, want %v", b.Status, got, want)
		}
		r.end()
	})
}

// TestContainersDoNotSayHowInputsFared, where there are no stages.
func TestContainersDoNotSayHowInputsFared(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, Config{})
		r.model(func(m *model, batch uint64, in [][]byte) {
			m.reply(batch, rpc.FlagEnd, rpc.Answer{Payload: in[0], Stages: rpc.AppendStageTime(nil, rpc.StageTime{Name: []byte("lie")})})
		})
		g := r.gateway()
		b := g.ask(0, time.Second, tagged(1))
		pass(10 * ms)
		if a := g.answer(b); a.Status != rpc.StatusOK || a.Stages != nil {
			t.Errorf("%v, stages %v", a.Status, times(a))
		}
		r.end()
	})
}
