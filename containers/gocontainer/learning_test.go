package gocontainer

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/topsail-serving/topsail/rpc"
	"github.com/topsail-serving/topsail/serving"
)

// pupil is a model that answers with the last label that it was told for an input.
type pupil struct {
	computing sync.Mutex // held in each call: none may overlap another
	labels    map[float64]float64
	calls     []string
	takes     time.Duration
	fails     error
	accuracy  float64
}

func (p *pupil) predict(inputs []serving.Value) []Result {
	if !p.computing.TryLock() {
		panic("a batch runs beside something else")
	}
	defer p.computing.Unlock()
	time.Sleep(p.takes)
	p.calls = append(p.calls, fmt.Sprintf("predict %d", len(inputs)))
	results := make([]Result, len(inputs))
	for i, in := range inputs {
		results[i].Output = serving.Number(p.labels[number(in)])
	}
	return results
}

func (p *pupil) Correct(_ context.Context, feedback []Feedback, user string) error {
	if !p.computing.TryLock() {
		panic("correct runs beside something else")
	}
	defer p.computing.Unlock()
	p.calls = append(p.calls, fmt.Sprintf("correct %d of %q", len(feedback), user))
	for _, f := range feedback {
		if math.IsNaN(number(f.Label)) {
			panic("no label")
		}
		p.labels[number(f.Input)] = number(f.Label)
	}
	return p.fails
}

func (p *pupil) Accuracy() float64 { return p.accuracy }

func number(v serving.Value) float64 {
	return math.Float64frombits(binary.LittleEndian.Uint64(v.Data))
}

func vector(x float64) []byte {
	return rpc.AppendInput(nil, serving.Input{Type: serving.Doubles, Data: binary.LittleEndian.AppendUint64(nil, math.Float64bits(x))})
}

func feedbackOn(x, y float64, user string) rpc.Feedback {
	return rpc.Feedback{Input: vector(x), Label: rpc.AppendPayload(nil, serving.Number(y)), User: []byte(user)}
}

// school is a container's worker and the sidecar's end of its connection, on a pipe,
// in a bubble.
type school struct {
	*testing.T
	conn     *rpc.Conn
	pupil    *pupil
	learning *learning
	log      bytes.Buffer
	outputs  map[uint64][]float64
	metrics  []rpc.Metric
	reports  []time.Time
}

func inSchool(t *testing.T, p *pupil, run func(s *school)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		p.labels = map[float64]float64{}
		s := &school{T: t, pupil: p, outputs: map[uint64][]float64{}}
		near, far := net.Pipe()
		hello := rpc.Hello{MaxFrame: rpc.MaxFrame}
		var container *rpc.Conn
		var opening, running sync.WaitGroup
		opening.Go(func() { container, _ = rpc.Connect(t.Context(), near, hello) })
		s.conn, _ = rpc.Accept(t.Context(), far, hello, nil)
		opening.Wait()
		s.learning = newLearning(p, nil, slog.New(slog.NewTextHandler(&s.log, nil)))
		w := &worker{replier: replier{conn: container}, predict: Predict(p.predict).queries(), one: true, learning: s.learning, batches: make(chan rpc.Frame, 1)}
		ctx, leave := context.WithCancel(t.Context())
		running.Go(func() { s.conn.Run(ctx, s.handle) })
		running.Go(func() { w.run(t.Context()) })
		run(s)
		leave()
		running.Wait()
	})
}

func (s *school) handle(f rpc.Frame) error {
	switch f.Kind {
	case rpc.KindMetrics:
		list, err := rpc.ParseMetrics(f.Body)
		s.metrics, s.reports = list, append(s.reports, time.Now())
		return err
	case rpc.KindReply:
		r, err := rpc.ParseReply(f)
		if err != nil {
			return err
		}
		var a rpc.Answer
		for r.Next(&a) {
			values, err := rpc.ParsePayload(a.Payload)
			if err != nil {
				return err
			}
			s.outputs[r.Batch] = append(s.outputs[r.Batch], number(values[0]))
		}
		return r.Err()
	}
	return rpc.Unexpected(f)
}

func (s *school) teach(list ...rpc.Feedback) {
	s.conn.Send(rpc.KindFeedback, 0, rpc.AppendFeedback(nil, 1, list...))
}

func (s *school) ask(batch uint64, x float64) {
	b := rpc.AppendPredictHead(nil, rpc.PredictHead{Batch: batch, Model: 1, Count: 1})
	s.conn.Send(rpc.KindPredict, 0, rpc.AppendAsk(b, &rpc.Ask{Budget: -1, Payload: vector(x)}))
}

// pass lets d pass, and all that is to happen by then.
func pass(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

// metric is the value of a metric in the last report, or NaN.
func (s *school) metric(name string) float64 {
	i := slices.IndexFunc(s.metrics, func(m rpc.Metric) bool { return m.Name == name })
	if i < 0 {
		return math.NaN()
	}
	return s.metrics[i].Value
}

func TestAModelLearns(t *testing.T) {
	inSchool(t, &pupil{accuracy: 0.75}, func(s *school) {
		s.ask(1, 5)
		pass(0)
		s.teach(feedbackOn(5, 50, "ann"), feedbackOn(6, 60, "bob"), feedbackOn(7, 70, "ann"))
		pass(0)
		s.ask(2, 5)
		s.ask(3, 6)
		pass(0)
		if got := fmt.Sprint(s.outputs); got != "map[1:[0] 2:[50] 3:[60]]" {
			t.Errorf("outputs by batch: %v", got)
		}
		want := []string{"predict 1", `correct 2 of "ann"`, `correct 1 of "bob"`, "predict 1", "predict 1"}
		if !slices.Equal(s.pupil.calls, want) {
			t.Errorf("calls %q, want %q", s.pupil.calls, want)
		}
		if s.metric("accuracy") != 0.75 || s.metric("correct_failures") != 0 {
			t.Errorf("metrics %v", s.metrics)
		}
	})
}

func TestBatchesGoBeforeFeedback(t *testing.T) {
	inSchool(t, &pupil{takes: time.Second}, func(s *school) {
		s.ask(1, 5)
		pass(0)
		s.teach(feedbackOn(5, 50, ""))
		s.ask(2, 5)
		pass(3 * time.Second)
		if got := fmt.Sprint(s.pupil.calls); got != `[predict 1 predict 1 correct 1 of ""]` {
			t.Errorf("calls %v", got)
		}
	})
}

func TestAccuracyIsReportedOnceASecondAfterFeedback(t *testing.T) {
	inSchool(t, &pupil{}, func(s *school) {
		pass(time.Minute)
		if len(s.reports) != 0 {
			t.Error("there was a report before any feedback")
		}
		start := time.Now()
		for i := range 25 { // for 2.5 s
			s.pupil.accuracy = float64(i)
			s.teach(feedbackOn(1, 1, ""))
			pass(100 * time.Millisecond)
		}
		pass(time.Minute)
		if got := fmt.Sprint(since(start, s.reports)); got != "[0s 1s 2s 3s]" {
			t.Errorf("reports came after %v", got)
		}
		if s.metric("accuracy") != 24 {
			t.Errorf("the last accuracy was %v, want 24", s.metric("accuracy"))
		}
	})
}

func since(start time.Time, times []time.Time) (all []time.Duration) {
	for _, t := range times {
		all = append(all, t.Sub(start))
	}
	return all
}

func TestAModelThatFailsToLearnServesOn(t *testing.T) {
	inSchool(t, &pupil{fails: errors.New("no idea"), accuracy: math.NaN()}, func(s *school) {
		s.teach(feedbackOn(1, 1, "ann"))
		s.teach(feedbackOn(1, math.NaN(), "bob")) // at which it panics
		pass(2 * time.Second)
		if s.metric("correct_failures") != 2 || !math.IsNaN(s.metric("accuracy")) {
			t.Errorf("metrics %v", s.metrics)
		}
		if n := strings.Count(s.log.String(), "failed to learn"); n < 1 || n > 2 {
			t.Errorf("the log has it %d times:\n%s", n, s.log.String())
		}
		s.ask(1, 1)
		pass(0)
		if got := fmt.Sprint(s.outputs); got != "map[1:[1]]" {
			t.Errorf("outputs by batch: %v", got)
		}
	})
}

func TestACallGetsABoundedPart(t *testing.T) {
	inSchool(t, &pupil{}, func(s *school) {
		s.teach(append(slices.Repeat([]rpc.Feedback{feedbackOn(1, 1, "ann")}, maxCorrected+1), feedbackOn(1, 1, "bob"))...)
		pass(0)
		want := []string{fmt.Sprintf(`correct %d of "ann"`, maxCorrected), `correct 1 of "ann"`, `correct 1 of "bob"`}
		if !slices.Equal(s.pupil.calls, want) {
			t.Errorf("calls %q, want %q", s.pupil.calls, want)
		}
	})
}

func TestQueuedFeedbackIsBounded(t *testing.T) {
	q := newFeedbackQueue()
	large := feedbackOn(1, 1, "")
	large.Label = rpc.AppendPayload(nil, serving.Value{DType: serving.String, Data: make([]byte, 100_000)})
	for range 100 {
		q.add([]rpc.Feedback{large})
	}
	if n := len(q.waiting); n != maxFeedbackBytes/(200+large.Size()) {
		t.Errorf("%d wait", n)
	}
	for _, list := q.next(); len(list) > 0; _, list = q.next() {
	}
	if q.bytes != 0 || len(q.waiting) != 0 {
		t.Errorf("%d bytes and %d entries are left", q.bytes, len(q.waiting))
	}
	two := rpc.Feedback{Input: rpc.AppendPayload(nil, serving.Number(1), serving.Number(2)), Label: large.Label}
	none := rpc.Feedback{Input: large.Input, Label: rpc.AppendPayload(nil)}
	if q.add([]rpc.Feedback{two, none}); len(q.waiting) != 0 {
		t.Error("what is not one input and one label was taken")
	}
}

// Frames are read into one buffer: what is learned later must not change with it.
func TestQueuedFeedbackIsCopied(t *testing.T) {
	q := newFeedbackQueue()
	v := feedbackOn(3, 4, "ann")
	q.add([]rpc.Feedback{v})
	clear(v.Input)
	clear(v.Label)
	clear(v.User)
	user, list := q.next()
	if user != "ann" || len(list) != 1 || number(list[0].Input) != 3 || number(list[0].Label) != 4 {
		t.Errorf("got %v of %q", list, user)
	}
}

func TestAModelThatDoesNotLearnTakesNothingIn(t *testing.T) {
	l := newLearning(nil, nil, slog.New(slog.DiscardHandler))
	if err := l.take(rpc.Frame{Kind: rpc.KindFeedback, Body: rpc.AppendFeedback(nil, 1, feedbackOn(1, 1, ""))}); err != nil || len(l.waiting) != 0 {
		t.Errorf("%d wait, %v", len(l.waiting), err)
	}
	if err := l.take(rpc.Frame{Kind: rpc.KindFeedback, Body: []byte{1}}); err == nil {
		t.Error("a broken frame was taken")
	}
}
