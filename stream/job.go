package stream

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/topsail-serving/topsail/serving"
	"github.com/topsail-serving/topsail/stream/internal/condition"
	"github.com/topsail-serving/topsail/stream/internal/deadletter"
	"github.com/topsail-serving/topsail/stream/internal/loop"
	"github.com/topsail-serving/topsail/stream/internal/recent"
)

// Config is what a job is made of. Name, Consumer, Scorer, Output, DeadLetter and one of
// App and Apps are required.
type Config struct {
	Name     string   // its own among the jobs of a process
	Consumer Consumer // which the job does not close
	Scorer   Scorer
	Streams  []string // that the consumer reads, for Status
	Catalog  Catalog  // says when the stream is suspended; nil: it never is

	App  string            // predicts for records that name none; empty: they become dead letters
	Apps map[string]string // what records may name, such as a type of data, and the app that predicts for it

	Output     string // the stream of results
	DeadLetter string // the stream of records that get none
	Format     Format // of records; results are written as their records are
	Spread     Spread

	Batch       int           // most records in flight; 0: 256
	Concurrency int           // most records that are asked at a time, if the replicas answer as many in time; 0: 256
	MaxRecord   int           // bytes of a record with its key and headers; 0: 1 MiB
	Patience    time.Duration // for how long a record waits for replicas that have no capacity for it; 0: for as long as it takes; below 0: not at all
	NoDefaults  bool          // defaults become dead letters
	Recent      int           // ids that are remembered, to find those that come twice; 0: 65536
	Drain       time.Duration // for how long Run goes on with the records in flight when its context ends; 0: 10 s

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

// Catalog says what is registered, and so which streams are suspended; stores do.
type Catalog interface {
	// Watch calls fn with the catalog as it is and after each change, until ctx ends.
	Watch(ctx context.Context, fn func(*serving.Catalog)) error
}

// HeaderApp is the header by which a record says who is asked, where the job lets it.
const HeaderApp = "topsail-app"

// Job serves one consumer group as one of its members.
type Job struct {
	cfg         Config
	metrics     *jobMetrics
	conditions  *condition.Tracker
	loop        *loop.Loop
	deadLetters deadletter.Writer
	counts      counts

	mu    sync.Mutex
	lanes map[string]*lane // by app; guarded by mu

	// Of the goroutine of Run.
	spreader *spreader
	recent   *recent.Memory[string] // where the records of ids were that got results
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
		cfg: cfg, conditions: condition.New(cfg.Log), lanes: map[string]*lane{},
		deadLetters: deadletter.Writer{Job: cfg.Name, To: cfg.DeadLetter, Keep: []string{HeaderApp}},
		spreader:    newSpreader(cfg.Spread), recent: recent.New[string](cfg.Recent),
	}
	j.loop = &loop.Loop{
		Consumer: cfg.Consumer, Most: cfg.Batch, Drain: cfg.Drain, Gate: loop.NewGate(cfg.Catalog == nil), Tracker: j.conditions, Work: j.work,
		Stuck:  func() bool { return j.waited() >= stuckAfter },
		Failed: func(operation string) { j.metrics.failures[operation].Inc() }, Lost: func() { j.metrics.lost.Inc() },
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
		wrong("dead_letter is an input, too: what goes there would be read again forever")
	}
	if c.Output != "" && slices.Contains(c.Streams, c.Output) {
		wrong("output is an input, too: what goes there would be read again forever")
	}
	if c.Batch < 0 || c.Concurrency < 0 || c.MaxRecord < 0 || c.Recent < 0 || c.Drain < 0 {
		wrong("no size, number and time may be negative")
	}
	errs = append(errs, c.Spread.check(c.Name)...)
	return errors.Join(errs...)
}

// stuckAfter is how long no record is answered, while one waits for replicas, until a job that is
// to end no longer waits for those in flight.
const stuckAfter = 2 * time.Second

var errNoName = errors.New("there is nothing to say")

// Run serves until ctx ends; then it finishes the records in flight, if that takes no
// longer than Drain. What it could not finish is not committed, and comes again, to
// another member once the consumer is closed. It fails with nothing: what it cannot do
// it tries again, and says so in the log, in Status and to Ready. While the stream is
// suspended it polls nothing.
func (j *Job) Run(ctx context.Context) error {
	ctx, stop := context.WithCancel(ctx)
	var following sync.WaitGroup
	defer following.Wait()
	defer stop()
	if j.cfg.Catalog != nil {
		following.Go(func() { j.loop.Gate.Follow(ctx, j.cfg.Catalog.Watch, j.cfg.Name) })
	}
	j.loop.Run(ctx)
	return nil
}

// work has records predicted.
func (j *Job) work(ctx context.Context, records []serving.StreamRecord) (loop.Batch, error) {
	b := &batch{job: j, items: make([]item, len(records))}
	if err := b.read(ctx, records); err != nil {
		return nil, err
	}
	if err := b.predict(ctx); err != nil {
		return nil, err
	}
	b.refuseDefaults()
	return b, nil
}

// Ready says what the job cannot do at present, or nil.
func (j *Job) Ready() error {
	if err := j.loop.Err(); err != nil {
		return fmt.Errorf("stream %s: %w", j.cfg.Name, err)
	}
	return nil
}
