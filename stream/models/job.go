package models

import (
	"cmp"
	"errors"
	"fmt"
	"net/http"
	"os"
	"time"

	"github.com/topsail-serving/topsail/internal/apiclient"
	"github.com/topsail-serving/topsail/internal/obs"
	"github.com/topsail-serving/topsail/serving/bundle"
	"github.com/topsail-serving/topsail/stream"
)

// Config is what a job is made of, besides what every job is. API is required.
type Config struct {
	stream.Config
	API apiclient.Options // where models are deployed

	// Descriptors, where there are any, say that messages are model descriptors of FLIP-23, and what those leave open.
	Descriptors []Descriptor
	Kinds       []OwnKind // of models, beside the ones that there are
	Locations   Locations // where models may be fetched from; none: they are in their messages
	Python      string    // of models that name none, such as "3.11"
	Concurrency int       // most models that are deployed at a time; 0: 4
	MaxModel    int64     // bytes of a model, and of what is in its archive; 0: 4 GiB
	// KeepVersions is how many of a model's versions that this stream made stay, the newest, beside
	// those that are used: when a model has more, or the store of bundles is full, the oldest are
	// removed. 0: 10.
	KeepVersions int
	Patience     time.Duration // how long to wait for a location that is unavailable, for an app or model that does not exist, and to remove a version that still answers; 0: 30 s

	Metrics *Metrics // nil: they are kept and shown nowhere
}

const (
	defaultBatch       = 16
	defaultConcurrency = 4
	defaultMaxRecord   = 16 << 20
	defaultMaxModel    = 4 << 30
	defaultPatience    = 30 * time.Second
	defaultKept        = 10
)

// KeepAll, in Config.KeepVersions, keeps all.
const KeepAll = -1

// Job serves a model stream.
type Job struct {
	*stream.Job
	api string
}

// New makes a job; Run runs it.
func New(cfg Config) (*Job, error) {
	if err := cfg.Check(); err != nil {
		return nil, err
	}
	if cfg.Consumer == nil || cfg.API.Server == "" {
		return nil, fmt.Errorf("model stream %q: needs a consumer and a management API", cfg.Name)
	}
	for _, k := range cfg.Kinds {
		if _, err := os.Stat(k.Code); err != nil {
			return nil, fmt.Errorf("model stream %q: code of kind %q: %w", cfg.Name, k.Name, err)
		}
	}
	cfg.Order = stream.OrderPartition
	cfg.Batch = cmp.Or(cfg.Batch, defaultBatch)
	cfg.MaxRecord = cmp.Or(cfg.MaxRecord, defaultMaxRecord)
	cfg.Concurrency = cmp.Or(cfg.Concurrency, defaultConcurrency)
	cfg.MaxModel = cmp.Or(cfg.MaxModel, defaultMaxModel)
	cfg.Patience = cmp.Or(cfg.Patience, defaultPatience)
	cfg.KeepVersions = cmp.Or(cfg.KeepVersions, defaultKept)
	cfg.Locations.Client = cmp.Or(cfg.Locations.Client, &http.Client{})
	cfg.API.Prefix = "/api/v1"
	client, err := apiclient.New(cfg.API)
	if err != nil {
		return nil, fmt.Errorf("model stream %q: %w", cfg.Name, err)
	}
	if cfg.Metrics == nil {
		cfg.Metrics = NewMetrics(obs.NewRegistry())
	}
	h := &handler{cfg: cfg, api: management{client}, metrics: cfg.Metrics.of(cfg.Name), others: make(chan struct{}, 1)}
	job, err := stream.New(cfg.Config, kind(), cfg.Metrics.common, h)
	if err != nil {
		return nil, err
	}
	h.job = job
	return &Job{Job: job, api: cfg.API.Server}, nil
}

// Check says everything that is wrong with what the job is to do, or nil. It looks
// neither at the consumer nor at the management API.
func (c *Config) Check() error {
	errs := c.Problems(kind())
	wrong := func(format string, args ...any) {
		errs = append(errs, fmt.Errorf("model stream %q: "+format, append([]any{c.Name}, args...)...))
	}
	for _, prefix := range c.Locations.Prefixes {
		if err := CheckLocation(prefix); err != nil {
			wrong("locations: %w", err)
		}
	}
	if err := checkKinds(c.Kinds); err != nil {
		errs = append(errs, fmt.Errorf("model stream %q: %w", c.Name, err))
	}
	if err := checkDescriptors(c.Descriptors); err != nil {
		wrong("descriptor: %w", err)
	}
	if c.Python != "" {
		m := bundle.Manifest{Runtime: "python", Python: c.Python, Entry: "module:callable"}
		if err := m.Check(); err != nil {
			wrong("%w", err)
		}
	}
	if c.Concurrency < 0 || c.MaxModel < 0 || c.Patience < 0 {
		wrong("no size, number and time may be negative")
	}
	return errors.Join(errs...)
}

// kind is what all model streams have in common.
func kind() stream.Kind {
	return stream.Kind{
		Stream: "model stream", Record: "update", Result: "acknowledgement", DeadLetters: "updates that cannot be applied", Shrink: "put the model at a location",
		TooLarge: AnswerTooLarge, Said: "the update is applied, and its acknowledgement is too large for its stream",
		Reasons: reasons(), Metrics: prefix,
		Gauge: stream.Gauge{
			Name: "suspended", Help: "1 while the stream is suspended.",
			Value: func(j *stream.Job, _ stream.Handler) float64 {
				if j.Gate.Suspension() != nil {
					return 1
				}
				return 0
			},
		},
	}
}

// Status is how a job is doing.
type Status struct {
	stream.Status
	API   string `json:"api"`
	Tally        // of what is committed
}

// Tally counts updates by what became of them.
type Tally struct {
	Updates     uint64            `json:"updates"`
	Outcomes    map[string]uint64 `json:"outcomes"`
	DeadLetters uint64            `json:"dead_letters"`
	Redelivered uint64            `json:"repeated"` // of the updates; the broker forgot that they were committed
}

// Status says how the job is doing. It is safe to call from any goroutine.
func (j *Job) Status() Status {
	s, t := j.Job.Status()
	return Status{s, j.api, Tally{Updates: t.Records, Outcomes: t.Outcomes, DeadLetters: t.DeadLetters, Redelivered: t.Redelivered}}
}
