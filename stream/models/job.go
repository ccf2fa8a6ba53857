package models

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/topsail-serving/topsail/internal/apiclient"
	"github.com/topsail-serving/topsail/serving"
	"github.com/topsail-serving/topsail/serving/bundle"
	"github.com/topsail-serving/topsail/stream"
	"github.com/topsail-serving/topsail/stream/internal/condition"
	"github.com/topsail-serving/topsail/stream/internal/deadletter"
	"github.com/topsail-serving/topsail/stream/internal/loop"
	"github.com/topsail-serving/topsail/stream/internal/recent"
)

// Config is what a job is made of. Name, Consumer, API, Output and DeadLetter are required.
type Config struct {
	Name     string            // its own among the jobs of a process
	Consumer stream.Consumer   // which the job does not close
	Streams  []string          // that the consumer reads, for Status
	Catalog  stream.Catalog    // says when the stream is suspended; nil: it never is
	API      apiclient.Options // where models are deployed

	Output     string        // the stream of acknowledgements
	DeadLetter string        // the stream of updates that cannot be applied
	Format     stream.Format // of updates; acknowledgements are written as their updates are

	Locations   Locations     // where models may be fetched from; none: they are in their messages
	Python      string        // of models that name none, such as "3.11"
	Batch       int           // most updates in flight; 0: 16
	Concurrency int           // most models that are deployed at a time; 0: 4
	MaxRecord   int           // bytes of an update with its key and headers; 0: 16 MiB
	MaxModel    int64         // bytes of a model, and of what is in its archive; 0: 4 GiB
	Patience    time.Duration // for how long a location that is away, and an app or model that is not there, is waited for; 0: 30 s
	Recent      int           // ids that are remembered, to find those that come twice; 0: 65536
	Drain       time.Duration // for how long Run goes on with the updates in flight when its context ends; 0: 10 s

	Metrics *Metrics     // nil: they are kept and shown nowhere
	Log     *slog.Logger // nil: nothing is logged
}

const (
	defaultBatch       = 16
	defaultConcurrency = 4
	defaultMaxRecord   = 16 << 20
	defaultMaxModel    = 4 << 30
	defaultPatience    = 30 * time.Second
	defaultRecent      = 1 << 16
	defaultDrain       = 10 * time.Second
)

// Job takes the updates of one consumer group as one of its members.
type Job struct {
	cfg         Config
	metrics     *jobMetrics
	conditions  *condition.Tracker
	loop        *loop.Loop
	deadLetters deadletter.Writer
	api         management
	counts      counts
	recent      *recent.Memory[known] // updates that were acknowledged; of the goroutine of Run
	ending      chan struct{}         // closed when Run is to end
}

// New makes a job; Run runs it.
func New(cfg Config) (*Job, error) {
	if err := cfg.Check(); err != nil {
		return nil, err
	}
	if cfg.Consumer == nil || cfg.API.Server == "" {
		return nil, fmt.Errorf("model stream %q: needs a consumer and a management API", cfg.Name)
	}
	cfg.Batch = cmp.Or(cfg.Batch, defaultBatch)
	cfg.Concurrency = cmp.Or(cfg.Concurrency, defaultConcurrency)
	cfg.MaxRecord = cmp.Or(cfg.MaxRecord, defaultMaxRecord)
	cfg.MaxModel = cmp.Or(cfg.MaxModel, defaultMaxModel)
	cfg.Patience = cmp.Or(cfg.Patience, defaultPatience)
	cfg.Recent = cmp.Or(cfg.Recent, defaultRecent)
	cfg.Drain = cmp.Or(cfg.Drain, defaultDrain)
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	cfg.Log = cfg.Log.With("stream", cfg.Name)
	cfg.API.Prefix = "/api/v1"
	client, err := apiclient.New(cfg.API)
	if err != nil {
		return nil, fmt.Errorf("model stream %q: %w", cfg.Name, err)
	}
	cfg.Locations.Client = cmp.Or(cfg.Locations.Client, &http.Client{})
	j := &Job{
		cfg: cfg, conditions: condition.New(cfg.Log), deadLetters: deadletter.Writer{Job: cfg.Name, To: cfg.DeadLetter}, recent: recent.New[known](cfg.Recent),
		api: management{client}, ending: make(chan struct{}),
	}
	j.loop = &loop.Loop{
		Consumer: cfg.Consumer, Most: cfg.Batch, Drain: cfg.Drain, Gate: loop.NewGate(cfg.Catalog == nil), Tracker: j.conditions, Work: j.work,
		Failed: func(operation string) { j.metrics.failures[operation].Inc() }, Lost: func() { j.metrics.lost.Inc() },
	}
	j.counts.since = time.Now()
	j.metrics = cfg.Metrics.of(j)
	return j, nil
}

// Check says everything that is wrong with what the job is to do, or nil. It looks
// neither at the consumer nor at the management API.
func (c *Config) Check() error {
	var errs []error
	wrong := func(format string, args ...any) {
		errs = append(errs, fmt.Errorf("model stream %q: "+format, append([]any{c.Name}, args...)...))
	}
	if c.Name == "" {
		wrong("it needs a name")
	}
	if c.Output == "" {
		wrong("it needs an output, the stream of acknowledgements")
	}
	switch {
	case c.DeadLetter == "":
		wrong("it needs a dead_letter, the stream of updates that cannot be applied")
	case slices.Contains(c.Streams, c.DeadLetter):
		wrong("dead_letter is an input, too: what goes there would be read again forever")
	}
	if c.Output != "" && slices.Contains(c.Streams, c.Output) {
		wrong("output is an input, too: what goes there would be read again forever")
	}
	for _, prefix := range c.Locations.Prefixes {
		if err := CheckLocation(prefix); err != nil {
			wrong("locations: %w", err)
		}
	}
	if c.Python != "" {
		m := bundle.Manifest{Runtime: "python", Python: c.Python, Entry: "module:callable"}
		if err := m.Check(); err != nil {
			wrong("%w", err)
		}
	}
	if c.Batch < 0 || c.Concurrency < 0 || c.MaxRecord < 0 || c.MaxModel < 0 || c.Patience < 0 || c.Recent < 0 || c.Drain < 0 {
		wrong("no size, number and time may be negative")
	}
	return errors.Join(errs...)
}

// Run takes updates until ctx ends; then it finishes those in flight, if that takes no longer
// than Drain; what waits for something that is away is given up. What it could not finish is
// not committed, and comes again. It fails with nothing: what it cannot do it tries again,
// and says so in the log, in Status and to Ready. While the stream is suspended it takes
// nothing. Run runs once.
func (j *Job) Run(ctx context.Context) error {
	defer context.AfterFunc(ctx, func() { close(j.ending) })()
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

// work has updates applied.
func (j *Job) work(ctx context.Context, records []serving.StreamRecord) (loop.Batch, error) {
	b := &batch{job: j, items: make([]item, len(records))}
	b.read(records)
	if err := b.apply(ctx); err != nil {
		return nil, err
	}
	return b, nil
}

// Ready says what the job cannot do at present, or nil.
func (j *Job) Ready() error {
	if err := j.loop.Err(); err != nil {
		return fmt.Errorf("model stream %s: %w", j.cfg.Name, err)
	}
	return nil
}
