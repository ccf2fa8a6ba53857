package stream

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/topsail-serving/topsail/internal/condition"
)

// Job serves one consumer group as one of its members.
type Job struct {
	// For the handler.
	Gate       *Gate              // closed while the stream is suspended
	Conditions *condition.Tracker // what cannot be done at present
	Log        *slog.Logger

	cfg         Config
	kind        Kind
	handler     Handler
	metrics     *jobMetrics
	deadLetters deadLetters
	recent      *memory // messages that got results
	window      *window
	ending      chan struct{}  // closed when Run is to end
	handling    sync.WaitGroup // items with the handler
	losses      losses
	lag         lag
	counts      counts
}

// New makes a job of a kind; Run runs it.
func New(cfg Config, k Kind, metrics *Metrics, h Handler) (*Job, error) {
	if err := errors.Join(cfg.Problems(k)...); err != nil {
		return nil, err
	}
	cfg.Batch = cmp.Or(cfg.Batch, defaultBatch)
	cfg.MaxRecord = cmp.Or(cfg.MaxRecord, defaultMaxRecord)
	cfg.Recent = cmp.Or(cfg.Recent, defaultRecent)
	cfg.CommitEvery = cmp.Or(cfg.CommitEvery, defaultCommitEvery)
	cfg.Drain = cmp.Or(cfg.Drain, defaultDrain)
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	log := cfg.Log.With("stream", cfg.Name)
	j := &Job{
		Gate: newGate(cfg.Catalog == nil), Conditions: condition.New(log), Log: log,
		cfg: cfg, kind: k, handler: h, deadLetters: deadLetters{cfg.Name, cfg.DeadLetter, k.Keep},
		recent: newMemory(cfg.Recent), window: newWindow(cfg.Order, cfg.Batch, mostBytes), ending: make(chan struct{}), counts: counts{since: time.Now()},
	}
	j.metrics = metrics.of(j)
	return j, nil
}

// Run serves until ctx ends; then it finishes the records in flight, if that takes no longer
// than Drain. What it could not finish is not committed, and is redelivered, to another member
// once the consumer is closed. It fails with nothing: what it cannot do it tries again, and
// says so in the log, in Status and to Ready. While the stream is suspended it polls nothing.
// Run runs once.
func (j *Job) Run(ctx context.Context) error {
	work, stop := after(ctx, j.cfg.Drain)
	defer context.AfterFunc(ctx, func() { close(j.ending) })()
	ctx, cancel := context.WithCancel(ctx)
	var following sync.WaitGroup
	defer following.Wait()
	defer cancel()
	if j.cfg.Catalog != nil {
		following.Go(func() { j.Gate.follow(ctx, j.cfg.Catalog, j.cfg.Name) })
	}
	if consumer, ok := j.cfg.Consumer.(Lagging); ok {
		following.Go(func() { j.followLag(ctx, consumer) })
	}
	polled := make(chan struct{})
	go func() {
		defer close(polled)
		j.polls(ctx, work)
	}()
	j.commits(work, polled)
	stop()
	<-polled // ctx has ended, too
	j.handling.Wait()
	return nil
}

// Ending is closed when the job is to end: what waits then would wait in vain.
func (j *Job) Ending() <-chan struct{} { return j.ending }

// after is ctx for a time longer.
func after(ctx context.Context, d time.Duration) (context.Context, context.CancelFunc) {
	later, cancel := context.WithCancel(context.WithoutCancel(ctx))
	stop := context.AfterFunc(ctx, func() {
		defer cancel()
		select {
		case <-time.After(d):
		case <-later.Done():
		}
	})
	return later, func() { stop(); cancel() }
}

// What the broker may fail at: as metrics call it, and as conditions do.
const (
	polling    = "poll"
	committing = "commit"

	pollRecords   = "poll records"
	commitResults = "commit results"
)

func (j *Job) failed(operation, condition string, err error) {
	j.Conditions.Begin(condition, err)
	j.metrics.failures[operation].Inc()
}

// Ready says what the job cannot do at present, or nil.
func (j *Job) Ready() error {
	if err := j.failing(); err != nil {
		return fmt.Errorf("%s %s: %w", j.kind.Stream, j.cfg.Name, err)
	}
	return nil
}

// failing is what cannot be done at present, or nil.
func (j *Job) failing() error {
	if j.losses.often() {
		return errors.Join(j.Conditions.Err(), errLosing)
	}
	return j.Conditions.Err()
}

var errLosing = errors.New("cannot keep its records: several times records belonged to another member when they were to be committed; does another process have the same name (streams.name), or does this one stand still?")

// conditions are what cannot be done at present, in a few words each.
func (j *Job) conditions() []string {
	all := j.Conditions.What()
	if j.losses.often() {
		all = append(all, "keep its records")
	}
	for i := range all {
		all[i] = "cannot " + all[i]
	}
	return all
}
