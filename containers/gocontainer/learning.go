package gocontainer

import (
	"context"
	"fmt"
	"log/slog"
	"math"
	"time"

	"github.com/topsail-serving/topsail/rpc"
	"github.com/topsail-serving/topsail/serving"
)

// Feedback is one input and the label that would have been right for it, in memory of
// their own.
type Feedback struct {
	Input, Label serving.Value
}

// Corrector is a model that learns while it serves. It may also have a method
// Accuracy() float64, which is asked at most once a second after feedback came and
// reported as the metric "accuracy".
type Corrector interface {
	// Correct learns from feedback of one user, whose id may be empty. It is called
	// between batches on the goroutine that calls Predict, and predictions wait for
	// it. An error, which may be a panic too, is logged and counted as the metric
	// "correct_failures".
	Correct(ctx context.Context, feedback []Feedback, user string) error
}

// reportEvery is how often metrics are sent at most.
const reportEvery = time.Second

// learning feeds a Corrector, and reports the metrics of it and of the model. It outlives
// connections. All but take is called by the goroutine that computes.
type learning struct {
	feedbackQueue
	corrector Corrector           // nil: feedback is dropped
	metrics   func() []rpc.Metric // nil: none but the corrector's
	log       *slog.Logger

	due      <-chan time.Time // when a report is due; nil: nothing is to be reported
	reported time.Time
	failures int
	failure  error // the last one, until it is logged
}

func newLearning(c Corrector, metrics func() []rpc.Metric, log *slog.Logger) *learning {
	l := &learning{feedbackQueue: newFeedbackQueue(), corrector: c, metrics: metrics, log: log}
	if metrics != nil {
		l.due = time.After(0)
	}
	return l
}

// take takes in a FEEDBACK frame.
func (l *learning) take(f rpc.Frame) error {
	_, list, err := rpc.ParseFeedback(f.Body)
	if err == nil && l.corrector != nil {
		l.add(list)
	}
	return err
}

// correct learns from what waits of one user.
func (l *learning) correct(ctx context.Context) {
	user, list := l.next()
	if len(list) == 0 || ctx.Err() != nil {
		return
	}
	if err := l.call(ctx, list, user); err != nil {
		l.failures++
		l.failure = err
	}
	if l.due == nil {
		l.due = time.After(time.Until(l.reported.Add(reportEvery)))
	}
}

func (l *learning) call(ctx context.Context, list []Feedback, user string) (err error) {
	defer func() {
		if v := recover(); v != nil {
			err = fmt.Errorf("panic: %v", v)
		}
	}()
	return l.corrector.Correct(ctx, list, user)
}

// report sends the metrics.
func (l *learning) report(conn *rpc.Conn) {
	l.due, l.reported = nil, time.Now()
	var list []rpc.Metric
	if l.metrics != nil {
		l.due = time.After(reportEvery)
		list = l.modelMetrics()
	}
	if l.corrector != nil {
		list = append(list, rpc.Metric{Kind: rpc.MetricCounter, Name: "correct_failures", Help: "Calls of Correct that failed.", Value: float64(l.failures)})
		if accuracy := l.accuracy(); !math.IsNaN(accuracy) {
			list = append(list, rpc.Metric{Kind: rpc.MetricGauge, Name: "accuracy", Help: "The model's own account of its accuracy.", Value: accuracy})
		}
	}
	if l.failure != nil {
		l.log.Warn("the model failed to learn from feedback", "err", l.failure, "failures", l.failures)
		l.failure = nil
	}
	if len(list) > 0 {
		_ = conn.Send(rpc.KindMetrics, 0, rpc.AppendMetrics(nil, list...)) // the totals return with the next report
	}
}

// modelMetrics is what the model counts itself.
func (l *learning) modelMetrics() (list []rpc.Metric) {
	defer func() {
		if v := recover(); v != nil {
			l.log.Warn("the model failed to say its metrics", "panic", v)
			list = nil
		}
	}()
	return l.metrics()
}

// accuracy is what the model says of itself, or NaN.
func (l *learning) accuracy() (accuracy float64) {
	defer func() {
		if v := recover(); v != nil {
			l.failure, accuracy = fmt.Errorf("accuracy: panic: %v", v), math.NaN()
		}
	}()
	if a, ok := l.corrector.(interface{ Accuracy() float64 }); ok {
		return a.Accuracy()
	}
	return math.NaN()
}
