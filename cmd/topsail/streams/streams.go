// Package streams runs the data and model streams of a configuration, each as a job with
// a consumer of its own, and announces them.
package streams

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"

	"github.com/topsail-serving/topsail/cmd/topsail/config"
	"github.com/topsail-serving/topsail/cmd/topsail/role"
	"github.com/topsail-serving/topsail/internal/adapter/kafkastream"
	"github.com/topsail-serving/topsail/internal/adapter/redisclient"
	"github.com/topsail-serving/topsail/internal/adapter/redisstream"
	"github.com/topsail-serving/topsail/internal/adapter/schemaregistry"
	"github.com/topsail-serving/topsail/internal/apiclient"
	"github.com/topsail-serving/topsail/internal/obs"
	"github.com/topsail-serving/topsail/internal/phase"
	"github.com/topsail-serving/topsail/internal/release"
	"github.com/topsail-serving/topsail/serving"
	"github.com/topsail-serving/topsail/serving/catalog"
	"github.com/topsail-serving/topsail/stream"
	"github.com/topsail-serving/topsail/stream/models"
	"github.com/topsail-serving/topsail/stream/records"
)

// Catalog is the store of what is registered.
type Catalog interface {
	stream.Catalog
	Apply(ctx context.Context, change catalog.Change, ifRevision uint64) (*serving.Catalog, error)
}

// Options are what the streams of a process need beside its configuration.
type Options struct {
	Name    string         // of the process among its peers
	Scorer  records.Scorer // predicts the records of data streams
	Demand  records.Demand // nil: what waits in them is told to no scheduler
	Catalog Catalog        // where streams are announced, and suspended
	API     string         // URL of the management API of model streams that name none
}

// Set is the streams that a process serves.
type Set struct {
	Options
	log       *slog.Logger
	jobs      []job
	consumers []stream.Consumer // of the jobs, in their order
	announced []serving.Stream  // the same
	data      []*records.Job
	models    []*models.Job
}

// job serves one stream.
type job interface {
	Run(ctx context.Context) error
	Ready() error
}

// Open makes a job for every stream that the configuration has this process serve.
// Brokers are dialled when they run.
func Open(base *role.Base, options Options) (*Set, error) {
	s := &Set{Options: options, log: base.Log}
	data, updates := base.Config.Served()
	if len(data) > 0 {
		metrics := records.NewMetrics(base.Metrics)
		for _, one := range data {
			if err := s.addData(base, one, metrics); err != nil {
				return nil, errors.Join(fmt.Errorf("stream %q: %w", one.Name, err), s.close())
			}
		}
	}
	if len(updates) > 0 {
		metrics := models.NewMetrics(base.Metrics)
		for _, one := range updates {
			if err := s.addModels(base, one, metrics); err != nil {
				return nil, errors.Join(fmt.Errorf("model stream %q: %w", one.Name, err), s.close())
			}
		}
	}
	return s, nil
}

// addData makes the job of a data stream.
func (s *Set) addData(base *role.Base, one *config.Stream, metrics *records.Metrics) error {
	consumer, err := open(base, one.Name, &one.Source, s.Name+"."+one.Name, one.Ordered)
	if err != nil {
		return err
	}
	s.consumers = append(s.consumers, consumer)
	cfg := one.Job()
	cfg.Consumer, cfg.Scorer, cfg.Demand, cfg.Catalog, cfg.Drain, cfg.Metrics, cfg.Log = consumer, s.Scorer, s.Demand, s.Catalog, base.Config.Streaming.DrainTimeout, metrics, base.Log
	if cfg.Topic != nil && one.SchemaRegistry != "" {
		if cfg.Topic.Registry, err = openRegistry(base, one); err != nil {
			return err
		}
	}
	made, err := records.New(cfg)
	if err != nil {
		return err
	}
	s.jobs, s.data = append(s.jobs, made), append(s.data, made)
	s.announced = append(s.announced, announcement(one.Name, serving.DataStream, one.App, &one.Source))
	return nil
}

// addModels makes the job of a model stream. In Redis one member at a time takes updates, so
// that they are taken in their order.
func (s *Set) addModels(base *role.Base, one *config.ModelStream, metrics *models.Metrics) error {
	consumer, err := open(base, one.Name, &one.Source, s.Name+"."+one.Name, true)
	if err != nil {
		return err
	}
	s.consumers = append(s.consumers, consumer)
	cfg := one.Job()
	cfg.Consumer, cfg.Catalog, cfg.Drain, cfg.Metrics, cfg.Log = consumer, s.Catalog, base.Config.Streaming.DrainTimeout, metrics, base.Log
	if cfg.API, err = management(base, one, s.API); err != nil {
		return err
	}
	made, err := models.New(cfg)
	if err != nil {
		return err
	}
	s.jobs, s.models = append(s.jobs, made), append(s.models, made)
	s.announced = append(s.announced, announcement(one.Name, serving.ModelStream, "", &one.Source))
	return nil
}

// management is the management API of a model stream.
func management(base *role.Base, s *config.ModelStream, otherwise string) (apiclient.Options, error) {
	client, err := base.Client()
	if err != nil {
		return apiclient.Options{}, err
	}
	client.Timeout = 0 // uploads take as long as they take, and so does what the API checks then: the job bounds each call
	if transport, ok := client.Transport.(*http.Transport); ok {
		transport.ResponseHeaderTimeout = 0
	}
	key, err := base.Token(s.KeyFile)
	return apiclient.Options{Server: cmp.Or(s.API, otherwise), Keys: key.Bytes, Agent: release.Agent() + " stream " + s.Name, HTTP: client}, err
}

func announcement(name string, kind serving.StreamKind, app string, from *config.Source) serving.Stream {
	return serving.Stream{Name: name, Kind: kind, App: app, Input: from.Input, Output: from.Output, DeadLetter: from.DeadLetter}
}

// open makes the consumer of a stream.
func open(base *role.Base, name string, s *config.Source, member string, ordered bool) (stream.Consumer, error) {
	if s.InKafka() {
		return openKafka(base, name, s, member)
	}
	return openRedis(base, name, s, member, ordered)
}

// openRegistry is the schema registry of a stream.
func openRegistry(base *role.Base, one *config.Stream) (*schemaregistry.Registry, error) {
	opt := schemaregistry.Options{URL: one.SchemaRegistry, Username: one.SchemaRegistryUsername, Agent: release.Agent() + " stream " + one.Name}
	var err error
	if opt.HTTP, err = base.Client(); err == nil && one.SchemaRegistryPasswordFile != "" {
		opt.Password, err = base.Password(one.SchemaRegistryPasswordFile)
	}
	if err != nil {
		return nil, err
	}
	return schemaregistry.New(opt)
}

func openKafka(base *role.Base, name string, s *config.Source, member string) (stream.Consumer, error) {
	broker := kafkastream.Broker{Addrs: s.Addrs, Mechanism: s.Mechanism, Username: s.Username, Log: base.Log.With("stream", name)}
	var err error
	if s.PasswordFile != "" {
		if broker.Password, err = base.Password(s.PasswordFile); err != nil {
			return nil, err
		}
	}
	if s.TLS {
		if broker.TLS, err = base.TLS.Client(); err != nil {
			return nil, err
		}
	}
	return kafkastream.Join(broker, kafkastream.Group{Name: s.Group, Member: member, Streams: s.Input, Takeover: s.Takeover})
}

func openRedis(base *role.Base, name string, s *config.Source, member string, ordered bool) (stream.Consumer, error) {
	at := redisclient.Server{Addrs: s.Addrs, Master: s.Master, Cluster: s.Cluster, Username: s.Username}
	var err error
	if len(s.Addrs) == 0 {
		at, err = base.Redis()
	} else {
		err = base.Secure(&at, s.PasswordFile, s.TLS)
	}
	if err != nil {
		return nil, err
	}
	return redisstream.Join(redisstream.Broker{Server: at, Log: base.Log.With("stream", name)}, redisstream.Group{
		Name: s.Group, Member: member, Streams: s.Input, Takeover: s.Takeover, Ordered: ordered, Delete: s.Delete, MaxLen: int64(s.MaxLen),
	})
}

// Run serves until ctx ends; then every job finishes what it has in flight, and leaves its
// group.
func (s *Set) Run(ctx context.Context) error {
	var all phase.Phase
	if len(s.jobs) > 0 {
		all = append(all, s.announce)
	}
	for _, job := range s.data {
		all = append(all, job.FollowBacklog)
	}
	for i, job := range s.jobs {
		all = append(all, func(ctx context.Context) error { return errors.Join(job.Run(ctx), s.consumers[i].Close()) })
	}
	return phase.Run(ctx, all)
}

func (s *Set) close() error {
	var errs []error
	for _, c := range s.consumers {
		errs = append(errs, c.Close())
	}
	return errors.Join(errs...)
}

// Ready says what some of the jobs cannot do at present, or nil.
func (s *Set) Ready() error {
	var errs []error
	for _, job := range s.jobs {
		errs = append(errs, job.Ready())
	}
	return errors.Join(errs...)
}

// Page shows to operators how the jobs are doing.
func (s *Set) Page() obs.Page {
	return obs.Page{Path: "/streams", Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		page := struct {
			Streams []records.Status `json:"streams"`
			Models  []models.Status  `json:"model_streams"`
		}{[]records.Status{}, []models.Status{}}
		for _, j := range s.data {
			page.Streams = append(page.Streams, j.Status())
		}
		for _, j := range s.models {
			page.Models = append(page.Models, j.Status())
		}
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(page) // a client that left needs no answer
	})}
}
