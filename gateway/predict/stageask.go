package predict

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/topsail-serving/topsail/rpc"
	"github.com/topsail-serving/topsail/serving"
)

// inputOf is what a stage's model or app is asked, which takes inputs of a type: what its sources have put out, by name where
// it has a signature, with tensors.
func (s *stages) inputOf(q *query, stage int, takes serving.InputType, tensors []serving.Tensor) (serving.Input, error) {
	from := s.Sources(stage)
	payloads := make([][]serving.Value, len(from))
	for i, source := range s.sources[stage] {
		var err error
		if payloads[i], err = q.putOut(source); err != nil {
			return serving.Input{}, err
		}
	}
	if takes == serving.Tensors {
		return namedInput(tensors, from, payloads)
	}
	values := make([]serving.Value, len(payloads))
	for i, payload := range payloads {
		values[i] = payload[0]
	}
	if len(values) == 1 {
		return serving.NewInput(takes, values[0])
	}
	return serving.JoinInput(takes, from, values)
}

// putOut is what a stage has put out, or below 0 the query's input: one value at least.
func (q *query) putOut(stage int) ([]serving.Value, error) {
	switch {
	case stage < 0 && q.Input.Type == serving.Tensors:
		return rpc.ParsePayload(q.Input.Data)
	case stage < 0:
		return []serving.Value{q.Input.Value()}, nil
	}
	return q.answers[q.slots[stage]].Output.All(), nil
}

// namedInput takes the inputs of a signature from payloads: from the value of that name, of whichever
// payload, else from the only value of a source of that name, or of the only source.
func namedInput(inputs []serving.Tensor, from []string, payloads [][]serving.Value) (serving.Input, error) {
	values := make([]serving.Value, len(inputs))
	for i, t := range inputs {
		v := valueNamed(t.Name, from, payloads)
		if v == nil && len(inputs) == 1 && len(payloads) == 1 && len(payloads[0]) == 1 {
			v = &payloads[0][0]
		}
		if v == nil {
			return serving.Input{}, fmt.Errorf("nothing before it puts out %q, which is %s", t.Name, t)
		}
		values[i] = *v
		values[i].Name = t.Name
		if err := t.Fits(&values[i]); err != nil {
			return serving.Input{}, err
		}
	}
	return serving.Input{Type: serving.Tensors, Data: rpc.AppendPayload(nil, values...)}, nil
}

func valueNamed(name string, from []string, payloads [][]serving.Value) *serving.Value {
	for _, payload := range payloads {
		for i := range payload {
			if payload[i].Name == name {
				return &payload[i]
			}
		}
	}
	for i, source := range from {
		if source == name {
			return &payloads[i][0]
		}
	}
	return nil
}

// nested is a query of a stage to another app, which has its own policy, metrics and records.
type nested struct {
	name   string
	leave  context.CancelFunc
	answer serving.Prediction // once the attempt's flight has landed
}

// askApp asks the app of an attempt's stage, or says why it cannot.
func (s *stages) askApp(q *query, i int, now time.Time) *serving.Failure {
	try := &q.attempts[i]
	name := s.Pipeline[try.stage].App
	inner, err := q.p.app(name)
	if err != nil {
		return failure(serving.NoReplica, "app %s does not exist", name)
	}
	in, err := s.inputOf(q, try.stage, inner.InputType, inner.Signature.InputTensors())
	if err != nil {
		return failure(serving.ModelError, "app %s: %v", name, err)
	}
	if slices.Contains(s.sources[try.stage], -1) {
		in.Data = slices.Clone(in.Data) // the query's own is only lent, and the app may still be asked when it has left
	}
	within := s.within(q, try.stage, now)
	if within <= 0 {
		return failure(serving.MissedSLO, "no time is left for it")
	}
	ctx, leave := context.WithTimeout(context.Background(), within)
	one, flight := &nested{name: name, leave: leave}, q.p.cache.Alone(q.wake)
	try.app, try.flight = one, flight
	try.input, try.respond, try.asked = in, now.Add(within), now
	asked := serving.Query{
		App: name, Input: in, Received: now, Timeout: within, User: q.User, Context: q.Context, Salt: q.Salt, NoCache: q.NoCache,
		Affinity: q.Affinity, Priority: q.class().Priority,
	}
	p, learns := q.p, q.patient
	go func() { // ends with its time, or when it is left
		defer leave()
		out, failure := p.askNested(ctx, &asked, learns, within, &one.answer)
		if out != nil {
			inner.metrics.answeredStage(time.Since(now))
		}
		flight.Land(out, failure)
	}()
	return nil
}

// askNested has the answer of an app as that of a stage: its default is a failure. A query to learn from leaves no trace
// there either.
func (p *Predictor) askNested(ctx context.Context, q *serving.Query, learns bool, within time.Duration, answer *serving.Prediction) (*serving.Output, *serving.Failure) {
	var err error
	if learns {
		*answer, err = p.DryRun(ctx, q, within)
	} else {
		var all []serving.Prediction
		if all, err = p.Predict(ctx, *q); err == nil {
			*answer = all[0]
		}
	}
	refusal, refused := errors.AsType[*serving.QueryError](err)
	switch {
	case refused:
		return nil, failure(serving.BadInput, "app %s: %s", q.App, refusal.Cause)
	case err != nil && ctx.Err() != nil:
		return nil, tooLate
	case err != nil:
		return nil, failure(serving.NoReplica, "app %s: %v", q.App, err)
	case answer.Default:
		return nil, failure(answer.Cause, "app %s: %s", q.App, answer.Explanation)
	}
	return answer.Full, nil
}
