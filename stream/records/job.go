package records

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/topsail-serving/topsail/internal/obs"
	"github.com/topsail-serving/topsail/serving"
	"github.com/topsail-serving/topsail/stream"
	"github.com/topsail-serving/topsail/stream/mapping"
)

// Config is what a job is made of, besides what every job is. Scorer and one of App and Apps
// are required.
type Config struct {
	stream.Config
	Scorer Scorer
	Demand Demand // nil: what waits is told to no scheduler

	App  string            // predicts for records that name none, or several (serving.SplitApps); empty: they become dead letters
	Apps map[string]string // what records may name, such as a type of data, and the app that predicts for it, or several

	Spread      Spread
	Priority    *int          // of the queries; nil: one below that of their app
	Concurrency int           // most records that are asked at a time, if the replicas answer as many in time; 0: 256
	Patience    time.Duration // for how long a record waits for replicas that have no capacity for it; 0: for as long as it takes; below 0: not at all
	AppPatience time.Duration // for how long a record waits for an app that it names, or a model of its app, and there is none; 0: 30 s; below 0: not at all
	CatchUp     time.Duration // in which what waits is to be worked off; 0: 5 min
	Defaults    Defaults      // what becomes of defaults

	Topic  *Topic  // how records are read and results written; nil: they are Topsail's own messages
	Routes []Route // where the results go that do not go to Output

	Metrics *Metrics // nil: they are kept and shown nowhere
}

const (
	defaultConcurrency = 256
	defaultAppPatience = 30 * time.Second
)

// Job serves a data stream.
type Job struct {
	*stream.Job
	name, app string
	own       []string // the apps of app
	demand    Demand
	catchUp   time.Duration
	handler   *handler
}

// New makes a job; Run runs it.
func New(cfg Config) (*Job, error) {
	if err := cfg.Check(); err != nil {
		return nil, err
	}
	if cfg.Consumer == nil || cfg.Scorer == nil {
		return nil, fmt.Errorf("stream %q: needs a consumer and a scorer", cfg.Name)
	}
	cfg.Concurrency = cmp.Or(cfg.Concurrency, defaultConcurrency)
	cfg.CatchUp = cmp.Or(cfg.CatchUp, defaultCatchUp)
	patience := max(0, cmp.Or(cfg.AppPatience, defaultAppPatience))
	if cfg.Metrics == nil {
		cfg.Metrics = NewMetrics(obs.NewRegistry())
	}
	h := &handler{cfg: cfg, metrics: cfg.Metrics.of(cfg.Name), spreader: newSpreader(cfg.Spread), lanes: map[string]*lane{}, mix: newMix(),
		own: serving.SplitApps(cfg.App), apps: map[string][]string{}, unknown: newAbsences(patience), bare: newAbsences(patience), waits: map[string]int{}}
	for said, apps := range cfg.Apps {
		h.apps[said] = serving.SplitApps(apps)
	}
	if cfg.Topic != nil {
		var err error
		if h.topic, err = newTopic(&cfg); err != nil {
			return nil, fmt.Errorf("stream %q: %w", cfg.Name, err)
		}
	}
	job, err := stream.New(cfg.Config, kind(), cfg.Metrics.common, h)
	if err != nil {
		return nil, err
	}
	h.job = job
	return &Job{Job: job, name: cfg.Name, app: cfg.App, own: h.own, demand: cfg.Demand, catchUp: cfg.CatchUp, handler: h}, nil
}

// Run is that of stream.Job. Meanwhile it has the schema of results registered, if there is one.
func (j *Job) Run(ctx context.Context) error {
	if t := j.handler.topic; t == nil || !t.writer.Registers() {
		return j.Job.Run(ctx)
	}
	ctx, cancel := context.WithCancel(ctx)
	var registering sync.WaitGroup
	defer registering.Wait()
	defer cancel()
	registering.Go(func() { j.handler.register(ctx) })
	return j.Job.Run(ctx)
}

// Check says everything that is wrong with what the job is to do, or nil. It looks
// neither at the consumer nor at the scorer.
func (c *Config) Check() error {
	errs := c.Problems(kind())
	wrong := func(format string, args ...any) {
		errs = append(errs, fmt.Errorf("stream %q: "+format, append([]any{c.Name}, args...)...))
	}
	if c.App == "" && len(c.Apps) == 0 {
		wrong("it needs an app, or apps that records may name")
	}
	if c.App != "" {
		if err := serving.CheckApps(c.App); err != nil {
			wrong("app: %w", err)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(c.Apps)) {
		if err := serving.CheckApps(c.Apps[name]); name == "" || err != nil {
			wrong("apps: %q must be what records say, with an app for it: %w", name, cmp.Or(err, errNoName))
		}
	}
	if c.Priority != nil && (*c.Priority < 0 || *c.Priority > serving.LowestPriority) {
		wrong("priority must be between 0, the highest, and %d, or -1 for one below that of the app", serving.LowestPriority)
	}
	if c.Concurrency < 0 || c.CatchUp < 0 {
		wrong("no size, number and time may be negative")
	}
	errs = slices.Concat(errs, c.Spread.check(c.Name), c.checkRoutes(), c.Topic.check(c.Name))
	return errors.Join(errs...)
}

var errNoName = errors.New("there is nothing to say")

// kind is what all data streams have in common.
func kind() stream.Kind {
	return stream.Kind{
		Stream: "stream", Record: "record", Result: "result", DeadLetters: "records that get no result", Shrink: "send less",
		TooLarge: ResultTooLarge, Said: "the result is too large for its stream",
		Reasons: []stream.Reason{UnknownApp, WrongInput, GaveDefault, ResultTooLarge, UnfitResult, mapping.UnknownSchema}, Keep: []string{HeaderApp}, Metrics: prefix,
		Gauge: stream.Gauge{
			Name: "waiting_seconds", Help: "For how long no record of some app was answered while one waited; 0 without any.",
			Value: func(_ *stream.Job, h stream.Handler) float64 { return h.Waited().Seconds() },
		},
	}
}

// Status is how a job is doing.
type Status struct {
	stream.Status
	App   string `json:"app,omitempty"`
	Tally        // of what is committed
}

// Tally counts records by what became of them.
type Tally struct {
	Records     uint64 `json:"records"`
	Results     uint64 `json:"results"`
	Defaults    uint64 `json:"defaults"` // of the results
	Dropped     uint64 `json:"dropped"`  // of the records: they have neither a result nor a dead letter
	DeadLetters uint64 `json:"dead_letters"`
	Redelivered uint64 `json:"repeated"` // of the records; the broker forgot that they were committed
}

// Status says how the job is doing. It is safe to call from any goroutine.
func (j *Job) Status() Status {
	s, t := j.Job.Status()
	return Status{s, j.app, Tally{
		Records: t.Records, Results: t.Outcomes[predicted] + t.Outcomes[gaveDefault], Defaults: t.Outcomes[gaveDefault],
		Dropped: t.Outcomes[dropped], DeadLetters: t.DeadLetters, Redelivered: t.Redelivered,
	}}
}

// Scorer answers queries; a gateway does. Many goroutines use it.
type Scorer interface {
	// App finds a registered app, or fails with serving.ErrUnknownApp, or with
	// serving.ErrNoCatalog while it is not known yet which apps there are.
	App(name string) (*serving.App, error)
	// Predict answers queries by the app's SLO, with its default where no prediction could be
	// had. It fails as App does, with a *serving.QueryError for a query that cannot be,
	// and when ctx ends.
	Predict(ctx context.Context, qs ...serving.Query) ([]serving.Prediction, error)
	// Capacity is how many ready replicas answer the queries of an app, and what a query
	// would wait there as they reported lately. 0 of both is what an unknown app has.
	Capacity(app string) (replicas int, wait time.Duration)
}
