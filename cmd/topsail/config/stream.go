package config

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"math"
	"regexp"
	"slices"
	"time"

	"topsail/stream"
)

// Streaming is how this process serves data streams.
type Streaming struct {
	Name         string        `toml:"name" help:"name of this process among the members of consumer groups, which it keeps when it starts again; by default the allocation's or the host's, and the process id"`
	Only         []string      `toml:"only" help:"the streams of the file that topsail stream serves; by default all"`
	DrainTimeout time.Duration `toml:"drain_timeout_micros" default:"10000000" min:"1" help:"how long the records in hand may take to end when stopping, in microseconds"`
}

// Stream is one [[stream]] of the file: records that an app predicts.
type Stream struct {
	Name       string            `toml:"name" help:"of the job, in logs and metrics"`
	App        string            `toml:"app" help:"the app that predicts for records that name none"`
	Apps       map[string]string `toml:"apps" help:"what records may name, and the app that predicts for it"`
	Input      []string          `toml:"input" help:"topics or streams of records"`
	Output     string            `toml:"output" help:"topic or stream of results"`
	DeadLetter string            `toml:"dead_letter" help:"topic or stream of the records that get no result"`

	Broker       string   `toml:"broker" enum:"kafka redis" help:"what the streams are in: kafka or redis"`
	Addrs        []string `toml:"addrs" help:"addresses of some brokers of Kafka; of Redis, of its Sentinels or of its cluster's nodes, by default the Redis of [redis]"`
	Username     string   `toml:"username" help:"user name at the broker"`
	PasswordFile string   `toml:"password_file" path:"true" help:"file of the password"`
	Mechanism    string   `toml:"mechanism" enum:"PLAIN SCRAM-SHA-256 SCRAM-SHA-512" help:"of Kafka: how to show the password, PLAIN, SCRAM-SHA-256 or SCRAM-SHA-512"`
	TLS          bool     `toml:"tls" help:"speak TLS to the broker, with the certificates of [tls]"`
	Master       string   `toml:"master" help:"of Redis: name of the master, when addrs are Sentinels"`
	Cluster      bool     `toml:"cluster" help:"of Redis: addrs are nodes of a Redis Cluster"`
	MaxLen       int      `toml:"max_len" min:"0" help:"of Redis: about how many results to keep; 0 is all"`
	Delete       bool     `toml:"delete" help:"of Redis: delete records that are done"`

	Group    string        `toml:"group" help:"consumer group; by default topsail-NAME"`
	Takeover time.Duration `toml:"takeover_micros" min:"0" help:"after what silence of a member others take its records, in microseconds; of Redis, how long a batch may take; by default 10 s of Kafka, and of Redis 15 s or 10 s more than the patience"`
	Ordered  bool          `toml:"ordered" help:"of Redis: a stream is with one member at a time, so that its results stay in order; with Kafka they do anyhow"`

	Format         stream.Format      `toml:"format" default:"any" help:"how records are written: protobuf, json or any"`
	Spread         stream.SpreadBy    `toml:"spread" default:"any" help:"to which replica a record goes: any, by key or by partition"`
	HotKeys        map[string]float64 `toml:"hot_keys" help:"keys that one replica is not enough for, and over how many each is spread"`
	HotShare       float64            `toml:"hot_share" default:"0.25" help:"the share of the last records above which a key is spread over more replicas; 0 is never"`
	Batch          int                `toml:"batch" default:"256" min:"1" help:"most records that are polled and committed together"`
	Concurrency    int                `toml:"concurrency" default:"256" min:"1" help:"most records that are asked at a time"`
	MaxRecordBytes int                `toml:"max_record_bytes" default:"1048576" min:"1" help:"largest record, with its key and headers"`
	Patience       time.Duration      `toml:"patience_micros" min:"0" help:"for how long a record is asked again when its answer is the default for want of capacity, in microseconds"`
	Defaults       string             `toml:"defaults" default:"result" enum:"result dead_letter" help:"what becomes of defaults: a result that says so, or a dead_letter"`
}

// InKafka says whether the stream is in Kafka; else it is in Redis.
func (s *Stream) InKafka() bool { return s.Broker == "kafka" }

// Job is what the stream is as a job, without a consumer and a scorer.
func (s *Stream) Job() stream.Config {
	c := stream.Config{
		Name: s.Name, Streams: s.Input, App: s.App, Apps: s.Apps, Output: s.Output, DeadLetter: s.DeadLetter, Format: s.Format,
		Spread: stream.Spread{By: s.Spread, HotShare: s.HotShare, HotKeys: map[string]int{}},
		Batch:  s.Batch, Concurrency: s.Concurrency, MaxRecord: s.MaxRecordBytes, Patience: s.Patience, NoDefaults: s.Defaults == "dead_letter",
	}
	for key, owners := range s.HotKeys {
		c.Spread.HotKeys[key] = int(owners)
	}
	return c
}

// streamName is what metrics and consumer groups are named after.
var streamName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,62}$`)

// streams completes and checks every stream.
func (l *loader) streams() []*Stream {
	var all []*Stream
	seen := map[string]string{} // name -> path
	for i := range l.doc.Stream {
		s, path := &l.doc.Stream[i], element("stream", i)
		s.Group = cmp.Or(s.Group, "topsail-"+s.Name)
		if s.Takeover == 0 && !s.InKafka() {
			s.Takeover = max(15*time.Second, s.Patience+10*time.Second)
		}
		job := s.Job()
		l.checked(path, fmt.Sprintf("stream %q: ", s.Name), job.Check())
		for _, err := range s.problems() {
			l.checked(path, "", errors.Join(fmt.Errorf("stream %q: %w", s.Name, err)))
		}
		if first, twice := seen[s.Name]; twice {
			l.wrong(path+".name", "stream %q is already defined in line %d", s.Name, l.file.line(first))
		} else {
			seen[s.Name] = path
		}
		all = append(all, s)
	}
	for _, name := range l.doc.Streaming.Only {
		if _, known := seen[name]; !known && len(all) > 0 {
			l.disagree("streams.only", "streams.only names stream %q, which is not in this file%s", name, didYouMean(name, keys(seen)))
		}
	}
	return all
}

// problems are what is wrong with where the records are; the job checks the rest.
func (s *Stream) problems() (errs []error) {
	wrong := func(format string, args ...any) { errs = append(errs, fmt.Errorf(format, args...)) }
	if s.Name != "" && !streamName.MatchString(s.Name) {
		wrong("name: use 1 to 63 letters, digits, '.', '_' or '-', beginning with a letter or digit")
	}
	if len(s.Input) == 0 || slices.Contains(s.Input, "") {
		wrong("it needs an input, the topics or streams of its records")
	}
	for _, key := range slices.Sorted(maps.Keys(s.HotKeys)) {
		if n := s.HotKeys[key]; n != math.Trunc(n) {
			wrong("hot_keys: %q must have a whole number of owners", key)
		}
	}
	switch s.Broker {
	case "kafka":
		return append(errs, s.kafkaProblems()...)
	case "redis":
		return append(errs, s.redisProblems()...)
	case "":
		wrong("it needs a broker, kafka or redis")
	}
	return errs
}

func (s *Stream) kafkaProblems() (errs []error) {
	wrong := func(format string, args ...any) { errs = append(errs, fmt.Errorf(format, args...)) }
	if len(s.Addrs) == 0 {
		wrong("addrs are needed, of some brokers of Kafka, such as 127.0.0.1:9092")
	}
	if s.Master != "" || s.Cluster || s.MaxLen != 0 || s.Delete || s.Ordered {
		wrong("master, cluster, max_len, delete and ordered are of Redis; Kafka keeps results of one key in order anyhow")
	}
	if all := s.Mechanism + s.Username + s.PasswordFile; all != "" && (s.Mechanism == "" || s.Username == "" || s.PasswordFile == "") {
		wrong("mechanism, username and password_file go together")
	}
	return errs
}

func (s *Stream) redisProblems() (errs []error) {
	wrong := func(format string, args ...any) { errs = append(errs, fmt.Errorf(format, args...)) }
	if s.Mechanism != "" {
		wrong("mechanism is of Kafka")
	}
	if len(s.Addrs) == 0 && (s.Username != "" || s.PasswordFile != "" || s.TLS || s.Master != "" || s.Cluster) {
		wrong("without addrs the stream is in the Redis of [redis], which also says how to get in: leave username, password_file, tls, master and cluster out")
	}
	if s.Master != "" && s.Cluster {
		wrong("master and cluster do not go together: the addrs are Sentinels, or nodes of a Redis Cluster")
	}
	if s.Patience > 0 && s.Takeover < s.Patience+time.Second {
		wrong("takeover_micros must be a second longer than patience_micros: others take the records of a batch that takes longer")
	}
	return errs
}

// Served are the streams that this process serves.
func (c *Config) Served() []*Stream {
	var all []*Stream
	for _, s := range c.Streams {
		if only := c.Streaming.Only; len(only) == 0 || slices.Contains(only, s.Name) {
			all = append(all, s)
		}
	}
	return all
}
