package stream

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"time"

	"topsail/serving"
)

// Config is what a job is made of. Name, Consumer, Scorer, Output, DeadLetter and one of
// App and Apps are required.
type Config struct {
	Name     string   // its own among the jobs of a process
	Consumer Consumer // which the job does not close
	Scorer   Scorer
	Streams  []string // that the consumer reads, for Status

	App  string            // predicts for records that name none; empty: they become dead letters
	Apps map[string]string // what records may name, such as a type of data, and the app that predicts for it

	Output     string // the stream of results
	DeadLetter string // the stream of records that get none
	Format     Format // of records; results are written as their records are
	Spread     Spread

	Batch       int           // most records in hand; 0: 256
	Concurrency int           // most records that are asked at a time, if the replicas answer as many in time; 0: 256
	MaxRecord   int           // bytes of a record with its key and headers; 0: 1 MiB
	Patience    time.Duration // for how long a record is asked again while its answer is a default for want of capacity; 0: not at all
	NoDefaults  bool          // defaults become dead letters
	Recent      int           // ids that are remembered, to find those that come twice; 0: 65536
	Drain       time.Duration // for how long Run goes on with the records in hand when its context ends; 0: 10 s

	Metrics *Metrics     // nil: they are kept and shown nowhere
	Log     *slog.Logger // nil: nothing is logged
}

const (
	defaultBatch       = 256
	defaultConcurrency = 256
	defaultMaxRecord   = 1 << 20
	defaultRecent      = 1 << 16
	defaultDrain       = 10 * time.Second
)

// HeaderApp is the header by which a record says who is asked, where the job lets it.
const HeaderApp = "topsail-app"

// Job serves one consumer group as one of its members.
type Job struct {
	cfg      Config
	metrics  *jobMetrics
	troubles *troubles
	pace     *pace
	counts   counts

	// Of the goroutine of Run.
	spreader *spreader
	recent   *recent
}

// New makes a job; Run runs it.
func New(cfg Config) (*Job, error) {
	if err := cfg.Check(); err != nil {
		return nil, err
	}
	if cfg.Consumer == nil || cfg.Scorer == nil {
		return nil, fmt.Errorf("stream %q: needs a consumer and a scorer", cfg.Name)
	}
	cfg.Batch = cmp.Or(cfg.Batch, defaultBatch)
	cfg.Concurrency = cmp.Or(cfg.Concurrency, defaultConcurrency)
	cfg.MaxRecord = cmp.Or(cfg.MaxRecord, defaultMaxRecord)
	cfg.Recent = cmp.Or(cfg.Recent, defaultRecent)
	cfg.Drain = cmp.Or(cfg.Drain, defaultDrain)
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	cfg.Log = cfg.Log.With("stream", cfg.Name)
	j := &Job{
		cfg: cfg, troubles: newTroubles(cfg.Log), pace: newPace(cfg.Concurrency),
		spreader: newSpreader(cfg.Spread), recent: newRecent(cfg.Recent),
	}
	j.counts.since = time.Now()
	j.metrics = cfg.Metrics.of(j)
	return j, nil
}

// Check says everything that is wrong with what the job is to do, or nil. It looks
// neither at the consumer nor at the scorer.
func (c *Config) Check() error {
	var errs []error
	wrong := func(format string, args ...any) {
		errs = append(errs, fmt.Errorf("stream %q: "+format, append([]any{c.Name}, args...)...))
	}
	if c.Name == "" {
		wrong("it needs a name")
	}
	if c.App == "" && len(c.Apps) == 0 {
		wrong("it needs an app, or apps that records may name")
	}
	if c.App != "" {
		if err := serving.CheckAppName(c.App); err != nil {
			wrong("app: %w", err)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(c.Apps)) {
		if err := serving.CheckAppName(c.Apps[name]); name == "" || err != nil {
			wrong("apps: %q must be what records say, with an app for it: %w", name, cmp.Or(err, errNoName))
		}
	}
	if c.Output == "" {
		wrong("it needs an output, the stream of results")
	}
	switch {
	case c.DeadLetter == "":
		wrong("it needs a dead_letter, the stream of records that get no result")
	case slices.Contains(c.Streams, c.DeadLetter):
		wrong("dead_letter is an input, too: what goes there would come again for ever")
	}
	if c.Output != "" && slices.Contains(c.Streams, c.Output) {
		wrong("output is an input, too: what goes there would come again for ever")
	}
	if c.Batch < 0 || c.Concurrency < 0 || c.MaxRecord < 0 || c.Patience < 0 || c.Recent < 0 || c.Drain < 0 {
		wrong("no size, number and time may be negative")
	}
	errs = append(errs, c.Spread.check(c.Name)...)
	return errors.Join(errs...)
}

var errNoName = errors.New("there is nothing to say")

// Run serves until ctx ends; then it finishes the records in hand, if that takes no
// longer than Drain. What it could not finish is not committed, and comes again, to
// another member once the consumer is closed. It fails with nothing: what it cannot do
// it tries again, and says so in the log, in Status and to Ready.
func (j *Job) Run(ctx context.Context) error {
	work, stop := after(ctx, j.cfg.Drain)
	defer stop()
	pause := backoff{}
	for ctx.Err() == nil {
		records, err := j.poll(ctx)
		if err != nil {
			pause.wait(ctx)
			continue
		}
		if err := j.serve(work, records); err != nil {
			pause.wait(ctx)
			continue
		}
		pause = backoff{}
	}
	return nil
}

// poll returns the next records.
func (j *Job) poll(ctx context.Context) ([]serving.StreamRecord, error) {
	records, err := j.cfg.Consumer.Poll(ctx, j.cfg.Batch)
	if err == nil && len(records) == 0 {
		err = errNothing
	}
	switch {
	case err == nil:
		j.troubles.end(pollRecords)
	case ctx.Err() == nil:
		j.troubles.begin(pollRecords, err)
		j.metrics.failures.poll.Inc()
	}
	return records, err
}

var errNothing = errors.New("the consumer returned neither records nor an error")

// serve brings records to their results and commits both. Its error says that they were
// not committed.
func (j *Job) serve(ctx context.Context, records []serving.StreamRecord) error {
	j.counts.take(len(records))
	defer j.counts.drop()
	b := &batch{job: j, began: time.Now(), items: make([]item, len(records))}
	if err := b.read(ctx, records); err != nil {
		return err
	}
	if err := b.predict(ctx); err != nil {
		return err
	}
	err := b.commit(ctx)
	switch {
	case err == nil:
		j.troubles.end(commitRecords)
		b.done()
	case errors.Is(err, serving.ErrRecordsLost):
		j.troubles.note(err.Error()) // to be expected when members come and go
		j.metrics.lost.Inc()
		j.counts.lose()
	case ctx.Err() == nil:
		j.troubles.begin(commitRecords, err)
		j.metrics.failures.commit.Inc()
	}
	return err
}

// What can be in trouble.
const (
	pollRecords   = "poll records"
	commitRecords = "commit results"
	predictThem   = "predict"
)

// Ready says what the job cannot do at present, or nil.
func (j *Job) Ready() error {
	if err := j.troubles.err(); err != nil {
		return fmt.Errorf("stream %s: %w", j.cfg.Name, err)
	}
	return nil
}

// after is a context that ends some time after ctx.
func after(ctx context.Context, d time.Duration) (context.Context, context.CancelFunc) {
	later, cancel := context.WithCancel(context.WithoutCancel(ctx))
	stop := context.AfterFunc(ctx, func() {
		select {
		case <-time.After(d):
			cancel()
		case <-later.Done():
		}
	})
	return later, func() { stop(); cancel() }
}

// backoff is the pause before something is tried again.
type backoff struct{ last time.Duration }

const (
	pauseFirst = 50 * time.Millisecond
	pauseMost  = 5 * time.Second
)

// next is how long to wait now.
func (b *backoff) next() time.Duration {
	b.last = min(max(2*b.last, pauseFirst), pauseMost)
	return b.last
}

func (b *backoff) wait(ctx context.Context) {
	select {
	case <-time.After(b.next()):
	case <-ctx.Done():
	}
}
