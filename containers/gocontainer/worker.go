package gocontainer

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/topsail-serving/topsail/rpc"
	"github.com/topsail-serving/topsail/serving"
)

// drainWithin bounds the wait for the last batch when stopping.
const drainWithin = 10 * time.Second

// worker computes on a goroutine of its own, so that the one that reads can
// answer PING while the model is busy.
type worker struct {
	conn     *rpc.Conn
	predict  Predict
	learning *learning
	batches  chan []byte // bodies of PREDICT frames

	inputs []serving.Value // reused, as is live
	live   []uint32        // the indices of the inputs that are not expired
}

// run serves until ctx ends or the connection is lost, and returns why.
func (w *worker) run(ctx context.Context) error {
	var computing sync.WaitGroup
	// The connection outlives ctx until the batch in hand is answered.
	serving, stop := context.WithCancel(context.WithoutCancel(ctx))
	defer stop()
	computing.Go(func() { w.compute(ctx) })
	unhook := context.AfterFunc(ctx, func() {
		// The sidecar says BYE when the last batch that it sent is answered.
		if w.conn.Send(rpc.KindDrain, 0, nil) != nil {
			stop()
		}
		time.AfterFunc(drainWithin, stop)
	})
	defer unhook()
	err := w.conn.Run(serving, w.handle)
	close(w.batches)
	computing.Wait()
	return err
}

func (w *worker) handle(f rpc.Frame) error {
	switch f.Kind {
	case rpc.KindPredict:
		w.batches <- append([]byte(nil), f.Body...)
		return nil
	case rpc.KindFeedback:
		return w.learning.take(f)
	case rpc.KindCancel:
		return nil
	}
	return rpc.Unexpected(f)
}

// compute answers batches until there are no more, and learns while none waits, until
// ctx ends: what a container has learned ends with it.
func (w *worker) compute(ctx context.Context) {
	for {
		wake := w.learning.wake
		if len(w.batches) > 0 {
			wake = nil // a batch goes first
		}
		select {
		case body, ok := <-w.batches:
			if !ok {
				return
			}
			w.answer(body)
		case <-wake:
			w.learning.correct(ctx)
		case <-w.learning.due:
			w.learning.report(w.conn)
		}
	}
}

// answer runs one batch and replies.
func (w *worker) answer(body []byte) {
	start := time.Now()
	p, err := rpc.ParsePredict(body)
	if err != nil {
		return
	}
	w.inputs, w.live = w.inputs[:0], w.live[:0]
	var refused []rpc.Answer
	var ask rpc.Ask
	for i := uint32(0); p.Next(&ask); i++ {
		values, err := rpc.ParsePayload(ask.Payload)
		switch {
		case ask.Budget == 0:
			refused = append(refused, rpc.Answer{Index: i, Status: rpc.StatusExpired, Message: []byte("the deadline passed before the batch")})
		case err != nil || len(values) != 1:
			refused = append(refused, rpc.Answer{Index: i, Status: rpc.StatusBadInput, Message: []byte("this container takes one value per input")})
		default:
			w.inputs, w.live = append(w.inputs, values[0]), append(w.live, i)
		}
	}
	results := w.call()
	b := rpc.AppendReplyHead(w.conn.Begin(rpc.KindReply), rpc.ReplyHead{Batch: p.Batch, Service: time.Since(start), Count: len(refused) + len(results)})
	for i := range refused {
		b = rpc.AppendAnswer(b, &refused[i])
	}
	var payload []byte
	for i := range results {
		a := rpc.Answer{Index: w.live[i]}
		payload = results[i].fill(&a, payload[:0])
		if a.Status == rpc.StatusDropped && w.conn.Peer().Features&rpc.FeatureStages == 0 {
			a.Status = rpc.StatusModelError // as near as an older sidecar comes
		}
		b = rpc.AppendAnswer(b, &a)
	}
	_ = w.conn.End(b, rpc.FlagEnd) // a connection that ended takes no reply
}

// call calls the model, and turns its panic or a wrong number of results into
// an error of each input.
func (w *worker) call() (results []Result) {
	if len(w.inputs) == 0 {
		return nil
	}
	fail := func(err error) {
		results = make([]Result, len(w.inputs))
		for i := range results {
			results[i].Err = err
		}
	}
	defer func() {
		if v := recover(); v != nil {
			fail(fmt.Errorf("panic: %v", v))
		}
	}()
	if results = w.predict(w.inputs); len(results) != len(w.inputs) {
		fail(fmt.Errorf("predict returned %d results for %d inputs", len(results), len(w.inputs)))
	}
	return results
}

func (r *Result) fill(a *rpc.Answer, payload []byte) []byte {
	if r.Err != nil {
		a.Status, a.Message = rpc.StatusModelError, []byte(r.Err.Error())
		if _, dropped := errors.AsType[Drop](r.Err); dropped {
			a.Status = rpc.StatusDropped
		}
		return payload
	}
	payload = rpc.AppendPayload(payload, r.Output)
	a.Payload = payload
	if r.Confidence != nil {
		a.Confidence, a.HasConfidence = *r.Confidence, true
	}
	return payload
}
