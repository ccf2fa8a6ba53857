package main

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"net/http"
	"path/filepath"
	"strconv"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/topsail-serving/topsail/internal/adapter/kafkastream"
	"github.com/topsail-serving/topsail/internal/adapter/redisclient"
	"github.com/topsail-serving/topsail/internal/adapter/redisstream"
	"github.com/topsail-serving/topsail/internal/obs"
	"github.com/topsail-serving/topsail/serving"
	"github.com/topsail-serving/topsail/stream"
	"github.com/topsail-serving/topsail/stream/records"
	"github.com/topsail-serving/topsail/test/brokers"
	"github.com/topsail-serving/topsail/test/servers"
)

// streamSetup is which stream a process serves.
type streamSetup struct {
	Kafka         bool // else Redis
	Addr          string
	In, Out, Dead string
}

// streams serves the same models over HTTP and as data streams, with all that it takes
// on the same cores: the broker, too.
func streams(ctx context.Context, b *bench) ([]figure, error) {
	s := setup{SLO: relaxed, CacheOff: true, Containers: []string{"noop"}}
	models, err := b.models(ctx, s)
	if err != nil {
		return nil, err
	}
	http, err := b.gateway(ctx, "over HTTP", s, models)
	if err != nil {
		return nil, err
	}
	if err := b.warm(ctx, http); err != nil {
		return nil, err
	}
	s.Endpoints = []string{models[0].sidecar.Addr}
	brokers, stop, err := b.brokers(ctx)
	defer stop()
	if err != nil {
		return nil, err
	}
	runs, err := alternate(b.Runs,
		func() (float64, error) {
			d, err := b.drive(ctx, http, many)
			return d.Rate, err
		},
		brokers[0].serve(ctx, b, s, stream.Protobuf), brokers[0].serve(ctx, b, s, stream.JSON), brokers[1].serve(ctx, b, s, stream.Protobuf))
	if err != nil {
		return nil, err
	}
	itself := func(x float64) float64 { return x }
	over := func(run, other float64) float64 { return run / other }
	return []figure{
		sampled("over HTTP, 128 connections", perSecond, bar{}, runs[0], itself),
		sampled("in Redis, protobuf", perSecond, bar{}, runs[1], itself),
		sampled("in Redis, JSON", perSecond, bar{}, runs[2], itself),
		sampled("in Kafka, protobuf", perSecond, bar{}, runs[3], itself),
		compared("Redis, protobuf / HTTP", times, atLeast(0.4), runs[1], runs[0], over),
		compared("Redis, JSON / HTTP", times, bar{}, runs[2], runs[0], over),
		compared("Kafka, protobuf / HTTP", times, atLeast(0.5), runs[3], runs[0], over),
	}, nil
}

// streamBroker is a broker with fresh streams for every run.
type streamBroker struct {
	name   string
	setup  streamSetup
	writer func() (streamWriter, error)
	follow func(stream string) (streamReader, error) // what is committed, as it comes
	make   func(ctx context.Context, streams ...string) error
	runs   int
}

// streamWriter writes messages.
type streamWriter interface {
	Write(ctx context.Context, messages []serving.StreamMessage) error
	Close()
}

// streamReader reads records.
type streamReader interface {
	Next(ctx context.Context, most int) ([]serving.StreamRecord, error)
	Close()
}

func (s *streamBroker) write(ctx context.Context, messages []serving.StreamMessage) error {
	w, err := s.writer()
	if err != nil {
		return err
	}
	defer w.Close()
	return w.Write(ctx, messages)
}

// brokers starts Redis and Kafka. stop is to be called in any case.
func (b *bench) brokers(ctx context.Context) (all []*streamBroker, stop func(), err error) {
	var running []*servers.Server
	stop = func() {
		for _, s := range running {
			s.Kill()
		}
	}
	ports, err := servers.FreePorts(4)
	if err != nil {
		return nil, stop, err
	}
	redis, err := servers.Redis(b.dir, ports)
	if err != nil {
		return nil, stop, err
	}
	kafka, err := servers.Kafka(filepath.Join(b.dir, "kafka"), ports+1, servers.KafkaOptions{LongLived: true})
	if err != nil {
		return nil, stop, err
	}
	for _, s := range []*servers.Server{redis, kafka} {
		if err := s.Start(ctx); err != nil {
			return nil, stop, err
		}
		running = append(running, s)
	}
	inRedis, inKafka := brokers.RedisAt(redis.Addr), brokers.KafkaAt(kafka.Addr)
	return []*streamBroker{{
		name: "redis", setup: streamSetup{Addr: redis.Addr},
		make:   func(context.Context, ...string) error { return nil },
		writer: func() (streamWriter, error) { return inRedis.Writer() },
		follow: func(stream string) (streamReader, error) { return inRedis.Follow(stream) },
	}, {
		name: "kafka", setup: streamSetup{Kafka: true, Addr: kafka.Addr},
		make: func(ctx context.Context, streams ...string) error {
			var errs []error
			for _, one := range streams {
				errs = append(errs, inKafka.CreateTopic(ctx, one, 4, nil))
			}
			return errors.Join(errs...)
		},
		writer: func() (streamWriter, error) { return inKafka.Writer() },
		follow: func(stream string) (streamReader, error) { return inKafka.Follow(stream) },
	}}, stop, nil
}

// recordsPerSecond is how many records there are for each second that a run is to take.
const recordsPerSecond = 20_000

// serve is a run of a stream: records are written, and then a process serves them.
func (s *streamBroker) serve(ctx context.Context, b *bench, setup setup, format stream.Format) func() (float64, error) {
	return func() (float64, error) {
		s.runs++
		setup.Stream = s.setup
		prefix := fmt.Sprintf("run%d.", s.runs)
		setup.Stream.In, setup.Stream.Out, setup.Stream.Dead = prefix+"in", prefix+"out", prefix+"dead"
		if err := s.make(ctx, setup.Stream.In, setup.Stream.Out, setup.Stream.Dead); err != nil {
			return 0, err
		}
		n := b.Seconds * recordsPerSecond
		if err := s.fill(ctx, setup.Stream.In, n, format); err != nil {
			return 0, err
		}
		c, err := b.role(ctx, "stream", setup)
		if err != nil {
			return 0, err
		}
		rate, err := throughput(ctx, "http://"+c.Ops+statusPath, n)
		_ = c.kill()
		b.say("  %-32s %8.0f/s", "in "+s.name+", "+format.String(), rate)
		return rate, err
	}
}

// fill writes the records, each with the input of every query and an id of its own.
func (s *streamBroker) fill(ctx context.Context, in string, n int, format stream.Format) error {
	var data []byte
	for _, x := range []float64{0.1, 0.2, 0.3, 0.4} {
		data = binary.LittleEndian.AppendUint64(data, math.Float64bits(x))
	}
	if format == stream.JSON {
		data = []byte("[0.1,0.2,0.3,0.4]")
	}
	var messages []serving.StreamMessage
	for i := range n {
		r := records.Request{UUID: strconv.Itoa(i), Data: data}
		m := serving.StreamMessage{Stream: in, Key: fmt.Appendf(nil, "key-%d", i%100)}
		if format == stream.JSON {
			m.Value = r.AppendJSON(nil)
		} else {
			m.Value = r.AppendProtobuf(nil)
		}
		if messages = append(messages, m); len(messages) == 1000 || i == n-1 {
			if err := s.write(ctx, messages); err != nil {
				return err
			}
			messages = messages[:0]
		}
	}
	return nil
}

// throughput follows the page of a process until all records have their results. The
// time is from the first ones to the last.
func throughput(ctx context.Context, url string, n int) (float64, error) {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Minute)
	defer cancel()
	look := time.NewTicker(2 * time.Millisecond)
	defer look.Stop()
	var first uint64
	var began time.Time
	for {
		text, err := get(ctx, url)
		if err != nil {
			return 0, err
		}
		var one records.Status
		if err := json.Unmarshal(text, &one); err != nil {
			return 0, err
		}
		switch {
		case one.DeadLetters+one.Defaults > 0:
			return 0, fmt.Errorf("%d dead letters and %d defaults: %s", one.DeadLetters, one.Defaults, one.LastError)
		case one.Results == uint64(n):
			return float64(one.Results-first) / one.LastCommit.Sub(began).Seconds(), nil
		case one.Results > 0 && first == 0:
			first, began = one.Results, *one.LastCommit
		}
		select {
		case <-look.C:
		case <-ctx.Done():
			return 0, fmt.Errorf("not all records have results: %s", text)
		}
	}
}

// serveStream is the role: a gateway that is called in process, and a job.
func serveStream(ctx context.Context, s setup) error {
	ln, err := listen(1)
	if err != nil {
		return err
	}
	metrics := obs.NewRegistry()
	g := newGateway(ctx, s, metrics, nil)
	consumer, err := s.Stream.join()
	if err != nil {
		return err
	}
	defer func() { _ = consumer.Close() }() // the process ends with it
	job, err := records.New(records.Config{
		Config: stream.Config{
			Name: "bench", Consumer: consumer, Streams: []string{s.Stream.In}, Output: s.Stream.Out, DeadLetter: s.Stream.Dead, Batch: 1000, Log: newLog(),
		},
		Scorer: g, App: appName, Patience: time.Minute,
	})
	if err != nil {
		return err
	}
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return g.Run(ctx, nil) })
	group.Go(func() error {
		return obs.ServeOps(ctx, obs.Listener{Listener: ln[0], Metrics: metrics}, obs.Health{Ready: func() error { return connected(g, s) }}, nil, statusPage(job))
	})
	group.Go(func() error { return announce(listening{Ops: ln[0].Addr().String()}) })
	group.Go(func() error {
		// Without a replica the first answers would be defaults, and those are retried with
		// pauses.
		if err := eventually(ctx, func(context.Context) error { return connected(g, s) }); err != nil {
			return err
		}
		return job.Run(ctx)
	})
	return group.Wait()
}

const statusPath = "/stream"

// statusPage tells the measuring process how the job is doing, as JSON.
func statusPage(job *records.Job) obs.Page {
	return obs.Page{Path: statusPath, Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_ = json.NewEncoder(w).Encode(job.Status()) // it looks again
	})}
}

func (s streamSetup) join() (stream.Consumer, error) {
	if s.Kafka {
		return kafkastream.Join(kafkastream.Broker{Addrs: []string{s.Addr}, Log: newLog()}, kafkastream.Group{Name: s.In, Member: "bench", Streams: []string{s.In}})
	}
	return redisstream.Join(redisstream.Broker{Server: redisclient.Server{Addrs: []string{s.Addr}}, Log: newLog()}, redisstream.Group{Name: s.In, Member: "bench", Streams: []string{s.In}})
}
