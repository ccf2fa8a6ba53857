// Package streams runs the data streams of a configuration, each as a job with a
// consumer of its own.
package streams

import (
	"context"
	"errors"
	"fmt"

	"golang.org/x/sync/errgroup"

	"topsail/cmd/topsail/config"
	"topsail/cmd/topsail/role"
	"topsail/internal/kafkastream"
	"topsail/internal/obs"
	"topsail/internal/redisstream"
	"topsail/stream"
)

// Set is the streams that a process serves.
type Set struct {
	jobs      []*stream.Job
	consumers []stream.Consumer // of the jobs, in their order
}

// Open makes a job for every stream that the configuration has this process serve.
// Brokers are dialled when they run. name is that of the process among its peers.
func Open(base *role.Base, scorer stream.Scorer, name string) (*Set, error) {
	s := &Set{}
	served := base.Config.Served()
	if len(served) == 0 {
		return s, nil
	}
	shared := stream.Config{
		Scorer: scorer, Drain: base.Config.Streaming.DrainTimeout, Metrics: stream.NewMetrics(base.Metrics), Log: base.Log,
	}
	for _, one := range served {
		if err := s.add(base, one, name+"."+one.Name, shared); err != nil {
			return nil, errors.Join(fmt.Errorf("stream %q: %w", one.Name, err), s.close())
		}
	}
	return s, nil
}

// add makes the job of a stream.
func (s *Set) add(base *role.Base, one *config.Stream, member string, shared stream.Config) error {
	consumer, err := open(base, one, member)
	if err != nil {
		return err
	}
	s.consumers = append(s.consumers, consumer)
	cfg := one.Job()
	cfg.Consumer, cfg.Scorer, cfg.Drain, cfg.Metrics, cfg.Log = consumer, shared.Scorer, shared.Drain, shared.Metrics, shared.Log
	job, err := stream.New(cfg)
	if err != nil {
		return err
	}
	s.jobs = append(s.jobs, job)
	return nil
}

// open makes the consumer of a stream.
func open(base *role.Base, s *config.Stream, member string) (stream.Consumer, error) {
	if s.InKafka() {
		return openKafka(base, s, member)
	}
	return openRedis(base, s, member)
}

func openKafka(base *role.Base, s *config.Stream, member string) (stream.Consumer, error) {
	broker := kafkastream.Broker{Addrs: s.Addrs, Mechanism: s.Mechanism, Username: s.Username, Log: base.Log.With("stream", s.Name)}
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

func openRedis(base *role.Base, s *config.Stream, member string) (stream.Consumer, error) {
	at := role.Redis{Addrs: s.Addrs, Master: s.Master, Cluster: s.Cluster, Username: s.Username}
	var err error
	if len(s.Addrs) == 0 {
		at, err = base.Redis()
	} else {
		err = base.Secure(&at, s.PasswordFile, s.TLS)
	}
	if err != nil {
		return nil, err
	}
	broker := redisstream.Broker{
		Addrs: at.Addrs, Master: at.Master, Cluster: at.Cluster, Username: at.Username, Password: at.Password, TLS: at.TLS,
		Log: base.Log.With("stream", s.Name),
	}
	return redisstream.Join(broker, redisstream.Group{
		Name: s.Group, Member: member, Streams: s.Input, Takeover: s.Takeover, Ordered: s.Ordered, Delete: s.Delete, MaxLen: int64(s.MaxLen),
	})
}

// Run serves until ctx ends; then every job finishes what it has in hand, and leaves its
// group.
func (s *Set) Run(ctx context.Context) error {
	var all errgroup.Group
	for i, job := range s.jobs {
		all.Go(func() error { return errors.Join(job.Run(ctx), s.consumers[i].Close()) })
	}
	return all.Wait()
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
func (s *Set) Page() obs.Page { return stream.Page(s.jobs) }
