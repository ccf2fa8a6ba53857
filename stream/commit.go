package stream

import (
	"context"
	"errors"
	"time"

	"github.com/topsail-serving/topsail/internal/retry"
	"github.com/topsail-serving/topsail/serving"
)

const (
	// lookEvery is how often it is seen whether records in flight are lost, or stuck.
	lookEvery = 100 * time.Millisecond
	// commitShare is the inverse of the share of time in which a stream commits, unless there is much to commit, or
	// nothing more to come, or there was little the last time, which waiting would make late and hardly fewer commits:
	// a transaction costs Kafka the same for one record as for hundreds.
	commitShare = 2
	little      = 8
	// stuckAfter is how long no record gets its result, while one waits for what it needs, until a job that is
	// to end no longer waits for those in flight.
	stuckAfter = 2 * time.Second
)

// commits commits results as they come, until ctx ends, or nothing more is polled and nothing in flight
// will have its result.
func (j *Job) commits(ctx context.Context, polled <-chan struct{}) {
	pause, last, took, before := Backoff(), time.Time{}, time.Duration(0), 0
	for ctx.Err() == nil {
		j.window.dropLost()
		if over := j.over(polled); len(j.window.ready()) == 0 { // in this order: what finishes after that is among those that are ready
			if over {
				return
			}
			j.await(ctx, polled)
			continue
		}
		retry.Sleep(ctx, j.cfg.CommitEvery-time.Since(last))
		if before >= little {
			j.window.gather(ctx, commitShare*took-time.Since(last))
		}
		last = time.Now()
		items := j.window.ready() // with what has come meanwhile
		err := j.commit(ctx, items)
		took, before = time.Since(last), len(items)
		if err != nil {
			pause.Sleep(ctx)
			continue
		}
		pause.Reset()
	}
}

// over says that the job is to end, and nothing in flight will have its result.
func (j *Job) over(polled <-chan struct{}) bool {
	select {
	case <-polled:
	default:
		return false
	}
	return !j.window.expects() || j.handler.Waited() >= stuckAfter
}

// await waits until there may be something to commit.
func (j *Job) await(ctx context.Context, polled <-chan struct{}) {
	var look <-chan time.Time
	if n, _ := j.window.now(); n > 0 {
		look, polled = time.After(lookEvery), nil
	}
	select {
	case <-j.window.finished:
	case <-polled:
	case <-look:
	case <-ctx.Done():
	}
}

// commit commits items with what became of them. Its error says that they are not committed.
func (j *Job) commit(ctx context.Context, items []*Item) error {
	if len(items) == 0 || ctx.Err() != nil {
		return context.Cause(ctx)
	}
	waiting, err := j.produce(ctx, items)
	switch {
	case err == nil:
		j.Conditions.End(commitResults)
		if len(waiting) > 0 {
			defer retry.Sleep(ctx, lookEvery) // until others are done
		}
		j.done(without(items, waiting))
	case errors.Is(err, serving.ErrRecordsLost):
		j.Conditions.End(commitResults)
		j.Conditions.Note(err.Error()) // to be expected when members come and go
		j.losses.add()
		j.metrics.lost.Inc()
	case ctx.Err() == nil:
		j.failed(committing, commitResults, err)
	}
	return err
}

// produce has the consumer commit items. A message that is too large becomes shorter.
func (j *Job) produce(ctx context.Context, items []*Item) (waiting []int, err error) {
	for pause := Backoff(); ; {
		waiting, err = j.cfg.Consumer.Commit(ctx, j.results(items))
		large, ok := errors.AsType[TooLarge](err)
		if !ok {
			return waiting, err
		}
		if i := large.TooLarge(); i < 0 || i >= len(items) || !items[i].shorten(j.kind, err) {
			j.failed(committing, commitResults, err) // until an operator raises the limit of the broker
			pause.Sleep(ctx)
		}
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
	}
}

// results are what the items get.
func (j *Job) results(items []*Item) []serving.StreamResult {
	messages, all := make([]serving.StreamMessage, 0, len(items)), make([]serving.StreamResult, len(items))
	for i, it := range items {
		all[i].Record = it.Record
		first, results := len(messages), it.Results()
		for r := range results {
			messages = results[r].append(messages, it, j)
		}
		all[i].Messages = messages[first:len(messages):len(messages)]
	}
	return all
}

// without is the items but those at some indexes.
func without(items []*Item, indexes []int) []*Item {
	if len(indexes) == 0 {
		return items
	}
	left := map[int]bool{}
	for _, i := range indexes {
		left[i] = true
	}
	var others []*Item
	for i, it := range items {
		if !left[i] {
			others = append(others, it)
		}
	}
	return others
}

// count counts the results of an item.
func (j *Job) count(it *Item, tally *Tally) {
	for _, r := range it.Results() {
		if r.Rejection == nil {
			tally.Outcomes[r.Outcome]++
			continue
		}
		tally.DeadLetters++
		j.metrics.dead(r.Rejection.Reason).Inc()
		j.Conditions.Note("dead letter: " + r.Rejection.Text)
	}
}

// done counts what was committed, and remembers the ids.
func (j *Job) done(items []*Item) {
	if len(items) == 0 {
		return
	}
	now := time.Now()
	tally := Tally{Records: uint64(len(items)), Outcomes: map[string]uint64{}}
	for _, it := range items {
		j.metrics.age.Observe(max(now.Sub(it.Record.At), 0).Seconds())
		if it.Redelivered {
			tally.Redelivered++
		}
		if j.count(it, &tally); !it.dead() {
			j.recent.add(it.id, it.known)
		}
	}
	j.window.remove(items...)
	j.handler.Committed(items)
	j.counts.commit(tally, items[len(items)-1].Position, now)
}
