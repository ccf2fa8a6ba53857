package config

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"time"

	"github.com/topsail-serving/topsail/stream"
	"github.com/topsail-serving/topsail/stream/records"
)

// Streaming is how this process serves streams.
type Streaming struct {
	Name         string        `toml:"name" help:"name of this process among the members of consumer groups, which it keeps when it starts again; by default the allocation's or the host's, and the process id"`
	Only         []string      `toml:"only" help:"the streams of the file that topsail stream serves, data and model streams; by default all"`
	DrainTimeout time.Duration `toml:"drain_timeout_micros" default:"10000000" min:"1" help:"how long the records in flight may take to end when stopping, in microseconds"`
}

// Stream is one [[stream]] of the file: records that an app predicts.
type Stream struct {
	Name string            `toml:"name" help:"of the job, in logs and metrics"`
	App  string            `toml:"app" help:"the app that predicts for records that name none; several, between commas, have a result each"`
	Apps map[string]string `toml:"apps" help:"what records may name, and the app that predicts for it, or several between commas"`
	Source
	Ordered bool `toml:"ordered" help:"of Redis: a stream is with one member at a time, so that its results keep their order whatever members do; with Kafka they do anyhow"`

	Format         stream.Format      `toml:"format" default:"any" help:"how records are written: protobuf, json or any"`
	Spread         records.SpreadBy   `toml:"spread" default:"any" help:"to which replica a record goes: any, by key or by partition"`
	HotKeys        map[string]float64 `toml:"hot_keys" help:"keys that one replica is not enough for, and over how many each is spread"`
	HotShare       float64            `toml:"hot_share" default:"-1" help:"the share of the last records above which a key is spread over more replicas; 0 is never, and -1 as its rate needs"`
	Order          stream.Order       `toml:"order" default:"key" help:"in which order results leave: that of the records with their key, of those of their partition, or none"`
	Batch          int                `toml:"batch" default:"256" min:"1" help:"most records in flight"`
	CommitEvery    time.Duration      `toml:"commit_every_micros" default:"5000" min:"0" help:"least time from one commit to the next, in microseconds"`
	Priority       int                `toml:"priority" default:"-1" min:"-1" help:"of the records' queries, from 0, the highest, to 3; -1: one below that of their app, so that no client waits for them"`
	Concurrency    int                `toml:"concurrency" default:"256" min:"1" help:"most records that are asked at a time"`
	MaxRecordBytes int                `toml:"max_record_bytes" default:"1048576" min:"1" help:"largest record, with its key and headers"`
	Patience       time.Duration      `toml:"patience_micros" default:"-1" min:"-1" help:"for how long a record waits for replicas that have no capacity for it, before its result is the default, in microseconds; -1: as long as it takes"`
	AppPatience    time.Duration      `toml:"app_patience_micros" default:"30000000" min:"0" help:"for how long a record waits for an app that it names, or for a model of its app, and there is none, before it is a dead letter, or its result the default, in microseconds"`
	CatchUp        time.Duration      `toml:"catch_up_micros" default:"300000000" min:"1" help:"in what time replicas that scale are to work off the records that wait, in microseconds"`
	Defaults       records.Defaults   `toml:"defaults" default:"result" help:"what becomes of defaults: a result that says so, a dead_letter, or nothing with drop"`

	SchemaRegistry             string  `toml:"schema_registry" help:"URL of a schema registry with Confluent's API, such as http://127.0.0.1:8081, that has the schemas of records and results"`
	SchemaRegistryUsername     string  `toml:"schema_registry_username" help:"user name at the registry"`
	SchemaRegistryPasswordFile string  `toml:"schema_registry_password_file" path:"true" help:"file of the password at the registry"`
	Record                     *Record `toml:"record"`
	Result                     *Result `toml:"result"`
	Routes                     []Route `toml:"route"`
}

// Job is what the stream is as a job, without a consumer and a scorer.
func (s *Stream) Job() records.Config {
	c := records.Config{
		Config: s.job(s.Name, s.Format, s.Batch, s.MaxRecordBytes),
		App:    s.App, Apps: s.Apps, Spread: records.Spread{By: s.Spread, HotShare: s.HotShare, HotKeys: map[string]int{}},
		Concurrency: s.Concurrency, Patience: s.patience(), AppPatience: cmp.Or(s.AppPatience, -1), Defaults: s.Defaults, CatchUp: s.CatchUp,
		Topic: s.topic(), Routes: s.routes(),
	}
	if s.Priority >= 0 {
		c.Priority = &s.Priority
	}
	c.Order, c.CommitEvery = s.Order, cmp.Or(s.CommitEvery, -1)
	for key, owners := range s.HotKeys {
		c.Spread.HotKeys[key] = int(owners)
	}
	return c
}

// patience is that of the job, which waits by default.
func (s *Stream) patience() time.Duration {
	switch {
	case s.Patience < 0:
		return 0
	case s.Patience == 0:
		return -1
	}
	return s.Patience
}

// streams completes and checks every stream.
func (l *loader) streams() []*Stream {
	var all []*Stream
	for i := range l.doc.Stream {
		s, path := &l.doc.Stream[i], element("stream", i)
		s.Group = cmp.Or(s.Group, "topsail-"+s.Name)
		job := s.Job()
		l.checked(path, fmt.Sprintf("stream %q: ", s.Name), job.Check())
		for _, err := range s.problems() {
			l.checked(path, "", errors.Join(fmt.Errorf("stream %q: %w", s.Name, err)))
		}
		l.nameStream(path, s.Name)
		all = append(all, s)
	}
	return all
}

// problems are what is wrong with where the records are; the job checks the rest.
func (s *Stream) problems() (errs []error) {
	errs = append(s.Source.problems(s.Name), s.topicProblems()...)
	for _, key := range slices.Sorted(maps.Keys(s.HotKeys)) {
		if n := s.HotKeys[key]; n != math.Trunc(n) {
			errs = append(errs, fmt.Errorf("hot_keys: %q must have a whole number of owners", key))
		}
	}
	if s.Ordered && s.InKafka() {
		errs = append(errs, errors.New("ordered is for Redis only; Kafka always keeps the results of one key in order"))
	}
	return errs
}

// Served are the data streams that this process serves, and the model streams.
func (c *Config) Served() (data []*Stream, models []*ModelStream) {
	serves := func(name string) bool {
		return len(c.Streaming.Only) == 0 || slices.Contains(c.Streaming.Only, name)
	}
	for _, s := range c.Streams {
		if serves(s.Name) {
			data = append(data, s)
		}
	}
	for _, s := range c.ModelStreams {
		if serves(s.Name) {
			models = append(models, s)
		}
	}
	return data, models
}
