package config

import (
	"fmt"
	"slices"
	"time"

	"github.com/topsail-serving/topsail/serving"
	"github.com/topsail-serving/topsail/stream"
)

// Source is where the records of a stream are, and where those go that are made of them.
type Source struct {
	Input      []string `toml:"input" help:"topics or streams of records"`
	DeadLetter string   `toml:"dead_letter" help:"topic or stream of the records that get no result"`
	Output     string   `toml:"output" help:"topic or stream of results"`

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
	Takeover time.Duration `toml:"takeover_micros" default:"10000000" min:"0" help:"after what silence of a member others take its records, in microseconds"`
}

// job is what the source is of a job, with what both kinds of streams say of their records.
func (b *Source) job(name string, format stream.Format, batch, maxRecord int) stream.Config {
	return stream.Config{Name: name, Streams: b.Input, Output: b.Output, DeadLetter: b.DeadLetter, Format: format, Batch: batch, MaxRecord: maxRecord}
}

// InKafka says whether the stream is in Kafka; else it is in Redis.
func (b *Source) InKafka() bool { return b.Broker == "kafka" }

// problems are what is wrong with it, for a stream of this name.
func (b *Source) problems(name string) (errs []error) {
	wrong := func(format string, args ...any) { errs = append(errs, fmt.Errorf(format, args...)) }
	if name != "" && serving.CheckStreamName(name) != nil {
		wrong("name: use 1 to 63 letters, digits, '.', '_' or '-', beginning with a letter or digit")
	}
	if len(b.Input) == 0 || slices.Contains(b.Input, "") {
		wrong("it needs an input, the topics or streams of its records")
	}
	switch b.Broker {
	case "kafka":
		return append(errs, b.kafkaProblems()...)
	case "redis":
		return append(errs, b.redisProblems()...)
	case "":
		wrong("it needs a broker, kafka or redis")
	}
	return errs
}

func (b *Source) kafkaProblems() (errs []error) {
	wrong := func(format string, args ...any) { errs = append(errs, fmt.Errorf(format, args...)) }
	if len(b.Addrs) == 0 {
		wrong("it needs addrs of some brokers of Kafka, such as 127.0.0.1:9092")
	}
	if b.Master != "" || b.Cluster || b.MaxLen != 0 || b.Delete {
		wrong("master, cluster, max_len and delete are for Redis only")
	}
	if all := b.Mechanism + b.Username + b.PasswordFile; all != "" && (b.Mechanism == "" || b.Username == "" || b.PasswordFile == "") {
		wrong("mechanism, username and password_file go together")
	}
	return errs
}

func (b *Source) redisProblems() (errs []error) {
	wrong := func(format string, args ...any) { errs = append(errs, fmt.Errorf(format, args...)) }
	if b.Mechanism != "" {
		wrong("mechanism is for Kafka only")
	}
	if len(b.Addrs) == 0 && (b.Username != "" || b.PasswordFile != "" || b.TLS || b.Master != "" || b.Cluster) {
		wrong("without addrs the stream uses the Redis of [redis] with its credentials: leave username, password_file, tls, master and cluster out")
	}
	if b.Master != "" && b.Cluster {
		wrong("master and cluster do not go together: the addrs are Sentinels, or nodes of a Redis Cluster")
	}
	return errs
}
