package gocontainer

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/topsail-serving/topsail/rpc"
)

// drainWithin bounds the wait for the last batch when stopping. Answers in parts have no bound but the
// deadlines of their queries, and the time after which the container is killed.
const drainWithin = 10 * time.Second

// worker computes on a goroutine of its own, so that the one that reads can
// answer PING while the model is busy.
type worker struct {
	replier
	predict  PredictQueries
	one      bool  // an input is one value
	cpus     []int // on which it computes; none: any
	learning *learning
	batches  chan rpc.Frame // PREDICT

	queries []Query  // reused, as is live
	live    []uint32 // the indices of the queries that are not expired
}

// run serves until ctx ends or the connection is lost, and returns why.
func (w *worker) run(ctx context.Context) error {
	var computing sync.WaitGroup
	computing.Go(func() {
		_ = pin(w.cpus) // as ServePipeline has tried
		w.compute(ctx)
	})
	err := runConn(ctx, w.conn, drainWithin, w.handle)
	close(w.batches)
	computing.Wait()
	return err
}

// runConn runs a connection until it is lost or, after the end of ctx, all that the sidecar has sent
// is answered, or drain has passed.
func runConn(ctx context.Context, conn *rpc.Conn, drain time.Duration, handle func(rpc.Frame) error) error {
	// The connection outlives ctx until the running batch is answered.
	serving, stop := context.WithCancel(context.WithoutCancel(ctx))
	defer stop()
	unhook := context.AfterFunc(ctx, func() {
		// The sidecar says BYE when the last batch that it sent is answered.
		if conn.Send(rpc.KindDrain, 0, nil) != nil {
			stop()
		}
		time.AfterFunc(drain, stop)
	})
	defer unhook()
	return conn.Run(serving, handle)
}

func (w *worker) handle(f rpc.Frame) error {
	switch f.Kind {
	case rpc.KindPredict:
		f.Keep()
		w.batches <- f
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
		case f, ok := <-w.batches:
			if !ok {
				return
			}
			w.answer(f)
		case <-wake:
			w.learning.correct(ctx)
		case <-w.learning.due:
			w.learning.report(w.conn)
		}
	}
}

// answer runs one batch and replies.
func (w *worker) answer(f rpc.Frame) {
	start := time.Now()
	p, err := rpc.ParsePredict(f)
	if err != nil {
		return
	}
	w.queries, w.live = w.queries[:0], w.live[:0]
	var refused []rpc.Answer
	var ask rpc.Ask
	for i := uint32(0); p.Next(&ask); i++ {
		q, status, why := newQuery(&ask, w.one)
		if status != rpc.StatusOK {
			refused = append(refused, rpc.Answer{Index: i, Status: status, Message: []byte(why)})
			continue
		}
		w.queries, w.live = append(w.queries, q), append(w.live, i)
	}
	results := w.call()
	b := rpc.AppendReplyHead(w.conn.Begin(rpc.KindReply), rpc.ReplyHead{Batch: p.Batch, Service: time.Since(start), Count: len(refused) + len(results)})
	for i := range refused {
		b = rpc.AppendAnswer(b, &refused[i])
	}
	var payload []byte
	for i := range results {
		a := rpc.Answer{Index: w.live[i]}
		payload = w.fill(&results[i], &a, payload[:0])
		b = rpc.AppendAnswer(b, &a)
	}
	_ = w.conn.End(b, rpc.FlagEnd) // a connection that ended takes no reply
}

// call calls the model, and turns its panic or a wrong number of results into
// an error of each input.
func (w *worker) call() (results []Result) {
	if len(w.queries) == 0 {
		return nil
	}
	fail := func(err error) {
		results = make([]Result, len(w.queries))
		for i := range results {
			results[i].Err = err
		}
	}
	defer func() {
		if v := recover(); v != nil {
			fail(fmt.Errorf("panic: %v", v))
		}
	}()
	if results = w.predict(w.queries); len(results) != len(w.queries) {
		fail(fmt.Errorf("predict returned %d results for %d inputs", len(results), len(w.queries)))
	}
	return results
}
