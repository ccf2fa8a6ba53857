package sidecar

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/topsail-serving/topsail/rpc"
	"github.com/topsail-serving/topsail/serving"
	"github.com/topsail-serving/topsail/test/require"
	"github.com/topsail-serving/topsail/test/wait"
)

// on is feedback on an input that no other has.
func on(tag float64, user string) rpc.Feedback {
	return rpc.Feedback{Input: tagged(tag), Label: rpc.AppendPayload(nil, serving.Number(tag)), User: []byte(user), QueryID: uint64(tag)}
}

func (g *gateway) teach(model uint32, list ...rpc.Feedback) {
	g.t.Helper()
	if err := g.conn.Send(rpc.KindFeedback, 0, rpc.AppendFeedback(nil, model, list...)); err != nil {
		g.t.Errorf("teach: %v", err)
	}
}

// counted is how much feedback of model m was forwarded and dropped.
func (r *rig) counted() (forwarded, dropped int) {
	r.t.Helper()
	for line := range strings.Lines(scrape(r.t, r.registry, "")) {
		if rest, ok := strings.CutPrefix(line, `topsail_sidecar_feedback_total{model="m",replica="m/0",result="forwarded",version="1"} `); ok {
			fmt.Sscan(rest, &forwarded)
		} else if rest, ok := strings.CutPrefix(line, `topsail_sidecar_feedback_total{model="m",replica="m/0",result="dropped",version="1"} `); ok {
			fmt.Sscan(rest, &dropped)
		}
	}
	return forwarded, dropped
}

func (r *rig) wantCounted(forwarded, dropped int) {
	r.t.Helper()
	if f, d := r.counted(); f != forwarded || d != dropped {
		r.t.Errorf("%d were forwarded and %d dropped, want %d and %d", f, d, forwarded, dropped)
	}
}

func TestFeedbackReachesEveryContainerOfItsModel(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, Config{Models: []*serving.Version{version("m", nil), version("n", nil)}})
		a, b := r.model(nil), r.model(nil)
		b.announce(1, "m", rpc.StateGone)
		b.announce(9, "m", rpc.StateReady)
		b.announce(4, "n", rpc.StateReady)
		pass(0)
		g := r.gateway()
		want := []rpc.Feedback{on(1, "ann"), on(2, ""), on(3, "bob")}
		g.teach(0, want...)
		g.teach(1, on(4, "eve"))
		pass(10 * ms)
		check := func(m *model, id uint32, want ...rpc.Feedback) {
			t.Helper()
			got := slices.DeleteFunc(m.lessons(), func(l lesson) bool { return l.id != id })
			if !slices.EqualFunc(got, want, func(l lesson, v rpc.Feedback) bool {
				return bytes.Equal(l.Input, v.Input) && bytes.Equal(l.Label, v.Label) && bytes.Equal(l.User, v.User) && l.QueryID == v.QueryID
			}) {
				t.Errorf("model %d got %v, want %v", id, got, want)
			}
		}
		check(a, 1, want...)
		check(b, 9, want...)
		check(b, 4, on(4, "eve"))
		if len(a.lessons()) != 3 || len(b.lessons()) != 4 {
			t.Errorf("the containers got %d and %d entries", len(a.lessons()), len(b.lessons()))
		}
		r.wantCounted(6, 0)
		r.end()
	})
}

func TestFeedbackThatNoModelCanLearnFromIsDropped(t *testing.T) {
	payload := func(values ...serving.Value) []byte { return rpc.AppendPayload(nil, values...) }
	input := func(in serving.Input) []byte { return rpc.AppendInput(nil, in) }
	good := on(1, "ann")
	for name, bad := range map[string]rpc.Feedback{
		"an input of another type":   {Input: input(serving.Input{Type: serving.Floats, Data: make([]byte, 8)}), Label: good.Label},
		"a text":                     {Input: input(serving.Input{Type: serving.Strings, Data: []byte("x")}), Label: good.Label},
		"an input of another length": {Input: input(serving.Input{Type: serving.Doubles, Data: make([]byte, 16)}), Label: good.Label},
		"a scalar":                   {Input: payload(serving.Number(1)), Label: good.Label},
		"two inputs":                 {Input: payload(serving.Number(1), serving.Number(1)), Label: good.Label},
		"no input":                   {Input: payload(), Label: good.Label},
		"no label":                   {Input: good.Input, Label: payload()},
		"two labels":                 {Input: good.Input, Label: payload(serving.Number(1), serving.Number(2))},
		"an opaque label":            {Input: good.Input, Label: payload(serving.Value{DType: serving.Opaque})},
		"a large label":              {Input: good.Input, Label: payload(serving.Value{DType: serving.String, Data: make([]byte, maxFeedback)})},
		"a long user id":             {Input: good.Input, Label: good.Label, User: make([]byte, maxFeedbackUser+1)},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newRig(t, Config{Models: []*serving.Version{version("m", func(v *serving.Version) { v.InputLength = 1 })}})
				m := r.model(nil)
				g := r.gateway()
				g.teach(0, good, bad, good)
				pass(10 * ms)
				if n := len(m.lessons()); n != 2 {
					t.Errorf("the container got %d entries, want the 2 good ones", n)
				}
				r.wantCounted(2, 1)
				r.end()
			})
		})
	}
}

func TestFeedbackOnAnUnknownModelHarmsNobody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, Config{})
		m := r.model(nil)
		g := r.gateway()
		g.teach(77, on(1, ""))
		batch := g.ask(0, time.Second, tagged(1))
		pass(10 * ms)
		if a := g.answer(batch); a.Status != rpc.StatusOK || len(m.lessons()) != 0 {
			t.Errorf("%v %q, and %v", a.Status, a.Message, m.lessons())
		}
		r.wantCounted(0, 0)
		g.conn.Send(rpc.KindFeedback, 0, []byte{0, 0, 0, 0, 1, 0, 0, 0}) // and no entry
		pass(ms)
		<-g.gone
		if g.why == nil || !strings.Contains(g.why.Error(), "FEEDBACK") {
			t.Errorf("a gateway that breaks the protocol heard %v", g.why)
		}
		r.end()
	})
}

// A text model takes texts, which have no shape.
func TestFeedbackOnTexts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, Config{Models: []*serving.Version{version("m", func(v *serving.Version) { v.InputType = serving.Strings })}})
		m := r.model(nil)
		r.gateway().teach(0, rpc.Feedback{Input: rpc.AppendInput(nil, serving.Input{Type: serving.Strings, Data: []byte("x")}), Label: on(1, "").Label})
		pass(ms)
		if len(m.lessons()) != 1 {
			t.Error("it did not arrive")
		}
		r.end()
	})
}

func TestFeedbackIsDroppedWhereNoContainerIsReady(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, Config{})
		g := r.gateway()
		g.teach(0, on(1, ""))
		pass(ms)
		r.wantCounted(0, 1)
		m := r.model(nil)
		m.announce(1, "m", rpc.StateLoading)
		pass(ms)
		g.teach(0, on(2, ""))
		pass(ms)
		r.wantCounted(0, 2)
		m.announce(1, "m", rpc.StateReady)
		pass(ms)
		g.teach(0, on(3, ""))
		pass(ms)
		r.wantCounted(1, 2)
		m.conn.Send(rpc.KindDrain, 0, nil)
		pass(ms)
		g.teach(0, on(4, ""))
		pass(ms)
		r.wantCounted(1, 3)
		r.end()
	})
}

func TestV1ContainersGetNoFeedback(t *testing.T) {
	r, _ := newV1Rig(t, firsts, 1, 0)
	g := r.gateway()
	wait.Until(t, "the model is ready", func() bool { return g.state(0) == rpc.StateReady })
	g.teach(0, on(1, ""), on(2, ""))
	wait.Until(t, "both are counted", func() bool { _, dropped := r.counted(); return dropped == 2 })
	batch := g.ask(0, -1, tagged(1))
	wait.Until(t, "a query is answered", func() bool { return g.unanswered() == 0 })
	if a := g.answer(batch); a.Status != rpc.StatusOK {
		t.Errorf("after it: %v %q", a.Status, a.Message)
	}
}

// large is feedback with a label of n bytes.
func large(n int) rpc.Feedback {
	v := on(1, "")
	v.Label = rpc.AppendPayload(nil, serving.Value{DType: serving.String, Data: make([]byte, n)})
	return v
}

// A container that does not read: memory stays bounded, the rest is counted, and a
// batch has no more than a part or two before it.
func TestFeedbackForAContainerThatDoesNotReadIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, Config{})
		m := r.model(nil)
		g := r.gateway()
		release := make(chan struct{})
		m.stick(release)
		const n, size = 1000, 10_000
		for range n / 100 {
			g.teach(0, slices.Repeat([]rpc.Feedback{large(size)}, 100)...)
			pass(10 * ms)
		}
		forwarded, dropped := r.counted()
		if held := (n - dropped) * size; held > maxFeedbackWaiting+4*feedbackPart || held < maxFeedbackWaiting/2 {
			t.Errorf("about %d bytes of %d are held", held, n*size)
		}
		if most := 3 * feedbackPart / size; forwarded > most {
			t.Errorf("%d are on the connection, want at most %d", forwarded, most)
		}
		batch := g.ask(0, time.Second, tagged(1))
		pass(10 * ms)
		m.stick(nil)
		close(release)
		pass(time.Second)
		if a := g.answer(batch); a.Status != rpc.StatusOK {
			t.Errorf("the query: %v %q", a.Status, a.Message)
		}
		ahead := slices.IndexFunc(m.lessons(), func(l lesson) bool { return l.batches > 0 })
		if ahead < 0 || ahead > 3*feedbackPart/size {
			t.Errorf("%d entries came before the batch", ahead)
		}
		if len(m.lessons()) != n-dropped {
			t.Errorf("%d entries came, and %d of %d were dropped", len(m.lessons()), dropped, n)
		}
		r.wantCounted(n-dropped, dropped)
		r.end()
	})
}

// A container may accept smaller frames than a gateway sends.
func TestFeedbackIsCutToTheFramesOfItsContainer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, Config{})
		small := hello(rpc.RoleContainer, "")
		small.MaxFrame = rpc.MinMaxFrame
		m, err := connect(t, r.dial.container(), small)
		require.NoError(t, err)
		m.announce(1, "m", rpc.StateReady)
		pass(0)
		list := append(slices.Repeat([]rpc.Feedback{large(50_000)}, 5), large(rpc.MinMaxFrame))
		r.gateway().teach(0, append(list, slices.Repeat([]rpc.Feedback{large(500)}, 1000)...)...)
		pass(time.Second)
		if n := len(m.lessons()); n != 1005 {
			t.Errorf("the container got %d entries, want 1005", n)
		}
		r.wantCounted(1005, 1)
		r.end()
	})
}

func TestFeedbackThatIsLostWithItsContainerIsCounted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, Config{})
		m := r.model(nil)
		g := r.gateway()
		release := make(chan struct{})
		m.stick(release)
		g.teach(0, slices.Repeat([]rpc.Feedback{large(1000)}, 300)...)
		pass(10 * ms)
		m.nc.Close()
		close(release)
		pass(10 * ms)
		if forwarded, dropped := r.counted(); forwarded+dropped != 300 || dropped < 200 {
			t.Errorf("%d were forwarded and %d dropped of 300", forwarded, dropped)
		}
		other := r.model(nil)
		g.teach(0, on(5, ""))
		pass(10 * ms)
		if len(other.lessons()) != 1 {
			t.Error("the next container got none")
		}
		r.end()
	})
}

// Feedback that comes while a batch runs is there before the next one, and neither
// batch waits for it.
func TestFeedbackWhileABatchRuns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, Config{})
		m := r.model(slow(20 * ms))
		g := r.gateway()
		first := g.ask(0, -1, tagged(1))
		pass(ms)
		start := time.Now()
		g.teach(0, slices.Repeat([]rpc.Feedback{large(1000)}, 500)...)
		second := g.ask(0, -1, tagged(2))
		pass(60 * ms)
		if took := g.answer(first).at.Sub(start); took > 20*ms {
			t.Errorf("the first batch took %v", took)
		}
		if took := g.answer(second).at.Sub(start); took > 40*ms {
			t.Errorf("the second batch took %v", took)
		}
		if n := len(m.lessons()); n != 500 {
			t.Errorf("%d entries came", n)
		}
		r.end()
	})
}
