package main

import (
	"context"
	_ "embed"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/topsail-serving/topsail/bench/load"
	"github.com/topsail-serving/topsail/serving"
	"github.com/topsail-serving/topsail/test/brokers"
	"github.com/topsail-serving/topsail/test/servers"
)

// paceCase is a model and what a stream, with its defaults, and perhaps another app ask of it.
type paceCase struct {
	takes     time.Duration // of one input, in the model
	objective time.Duration
	replicas  int
	patience  time.Duration // 0: the default of streams
	shared    bool          // another app takes half of what the replicas can do
}

func paceCases() (all []paceCase) {
	const usual, slow = 100 * time.Millisecond, time.Second
	for _, shared := range []bool{false, true} {
		for _, replicas := range []int{1, 4} {
			all = append(all, paceCase{time.Millisecond, usual, replicas, 0, shared}, paceCase{10 * time.Millisecond, usual, replicas, 0, shared},
				paceCase{100 * time.Millisecond, slow, replicas, 0, shared})
		}
	}
	return append(all, paceCase{10 * time.Millisecond, usual, 1, 10 * time.Second, false}, paceCase{10 * time.Millisecond, usual / 2, 1, time.Minute, false},
		paceCase{100 * time.Millisecond, usual, 1, 0, false})
}

func (c paceCase) String() string {
	text := fmt.Sprintf("%v an input, %d replicas, objective %v", c.takes, c.replicas, c.objective)
	if c.patience > 0 {
		text += fmt.Sprintf(", patience %v", c.patience)
	}
	if c.shared {
		text += ", half for another app"
	}
	return text
}

// nominal is how many inputs a second the replicas could take if nothing but the model took
// time.
func (c paceCase) nominal() float64 { return float64(c.replicas) / c.takes.Seconds() }

// others is how many queries a second the other app sends.
func (c paceCase) others() float64 {
	if c.shared {
		return c.nominal() / 2
	}
	return 0
}

// pace compares what streams get from models that take their time with what these can do.
// Everything is as a user runs it: local mode, Python, Redis, the defaults of a stream.
func pace(ctx context.Context, b *bench) (figures []figure, err error) {
	redis, err := b.redis(ctx)
	if err != nil {
		return nil, err
	}
	defer redis.Kill()
	for at, c := range paceCases() {
		var runs []paceRun
		for run := range b.Runs {
			r, err := b.pace(ctx, c, redis.Addr, fmt.Sprintf("pace%d.%d.", at, run))
			if err != nil {
				return nil, fmt.Errorf("%v: %w", c, err)
			}
			b.say("  %-70s %8.1f/s, %.2f of capacity; defaults: %d of the stream, %d of the other app", c, r.rate, r.used(c), r.defaults, r.others)
			runs = append(runs, r)
		}
		figures = append(figures,
			sampled(c.String()+": records", perSecond, bar{}, runs, func(r paceRun) float64 { return r.rate }),
			sampled("… of what the replicas can do, with the other app", times, atLeast(0.85), runs, func(r paceRun) float64 { return r.used(c) }),
			sampled("… defaults", count, none(), runs, func(r paceRun) float64 { return float64(r.defaults) }))
		if c.shared {
			figures = append(figures, sampled("… defaults of the other app", percent, bar{}, runs, func(r paceRun) float64 { return 100 * float64(r.others) / float64(r.asked) }))
		}
	}
	return figures, nil
}

// redis starts one for streams, which the caller kills.
func (b *bench) redis(ctx context.Context) (*servers.Server, error) {
	port, err := servers.FreePort()
	if err != nil {
		return nil, err
	}
	redis, err := servers.Redis(b.dir, port)
	if err != nil {
		return nil, err
	}
	return redis, redis.Start(ctx)
}

// paceRun is what one run found.
type paceRun struct {
	capacity      float64 // inputs a second that as many processes of the model took by themselves
	rate          float64 // records a second
	defaults      int     // of the stream
	others, asked int     // defaults of the other app, and its queries
}

// used is the part of the replicas' capacity that stream and other app got.
func (r paceRun) used(c paceCase) float64 { return (r.rate + c.others()) / r.capacity }

// pace starts Topsail on a stream that is full, and follows it to the end.
func (b *bench) pace(ctx context.Context, c paceCase, redis, prefix string) (run paceRun, err error) {
	defer b.family.stop()
	dir, err := os.MkdirTemp(b.dir, "pace")
	if err != nil {
		return run, err
	}
	config, err := c.write(dir, redis, prefix)
	if err != nil {
		return run, err
	}
	if run.capacity, err = c.alone(ctx, dir); err != nil {
		return run, err
	}
	n := int((c.nominal() - c.others()) * float64(b.Seconds))
	l, err := b.local(ctx, dir, config)
	if err != nil {
		return run, err
	}
	if err := eventually(ctx, l.replicas(c.replicas)); err != nil {
		return run, err
	}
	group, ctx := errgroup.WithContext(ctx)
	loading, done := context.WithCancel(ctx)
	if c.shared {
		group.Go(func() error {
			report, err := load.Run(loading, load.Config{
				URL: l.query + "/other/predict", Body: load.Cycle([]byte(`{"input": [1, 2]}`)), Rate: c.others(), Uniform: true,
				Duration: 10 * b.period(), Connections: openConnections,
			})
			run.asked, run.others = report.Answered, report.Answered-report.Good
			if loading.Err() != nil {
				return nil // the stream is at its end
			}
			return err
		})
	}
	group.Go(func() (err error) {
		defer done()
		if err := fillPace(ctx, redis, prefix+"in", n); err != nil {
			return err
		}
		run.rate, run.defaults, err = l.follow(ctx, n)
		return err
	})
	return run, group.Wait()
}

// alone is how many inputs a second the model takes in as many processes as there are
// replicas, without Topsail.
func (c paceCase) alone(ctx context.Context, dir string) (rate float64, err error) {
	var processes errgroup.Group
	rates := make([]float64, c.replicas)
	for i := range rates {
		processes.Go(func() error {
			cmd := exec.CommandContext(ctx, "python3", filepath.Join(dir, "pace.py"))
			cmd.Env = append(os.Environ(), fmt.Sprint("TAKES=", c.takes.Seconds()))
			out, err := cmd.Output()
			if err != nil {
				return fmt.Errorf("run the model by itself: %w", err)
			}
			_, err = fmt.Sscan(string(out), &rates[i])
			return err
		})
	}
	err = processes.Wait()
	for _, r := range rates {
		rate += r
	}
	return rate, err
}

// paceModel is the model, in Python.
//
//go:embed pace.py
var paceModel []byte

// write writes the model and the configuration.
func (c paceCase) write(dir, redis, prefix string) (config string, err error) {
	model := filepath.Join(dir, "pace.py")
	if err := os.WriteFile(model, paceModel, 0o600); err != nil {
		return "", err
	}
	var text strings.Builder
	for _, app := range []string{"pace", "other"} {
		fmt.Fprintf(&text, "[[app]]\nname = %q\ninput_type = \"doubles\"\nlatency_slo_micros = %d\nmodels = [\"pace\"]\n", app, c.objective.Microseconds())
		if app == "other" {
			fmt.Fprintf(&text, "cache.off = true\n\n")
		}
	}
	fmt.Fprintf(&text, "[[model]]\nname = \"pace\"\nversion = \"1\"\ninput_type = \"doubles\"\nreplicas = %d\ncommand = [\"python3\", \"-m\", \"topsail\", %q]\nenv = { TAKES = \"%v\" }\n\n",
		c.replicas, model+":predict", c.takes.Seconds())
	fmt.Fprintf(&text, "[[stream]]\nname = \"pace\"\napp = \"pace\"\nbroker = \"redis\"\naddrs = [%q]\ninput = [%q]\noutput = %q\ndead_letter = %q\n",
		redis, prefix+"in", prefix+"out", prefix+"dead")
	if c.patience > 0 {
		fmt.Fprintf(&text, "patience_micros = %d\n", c.patience.Microseconds())
	}
	config = filepath.Join(dir, "topsail.toml")
	return config, os.WriteFile(config, []byte(text.String()), 0o600)
}

// fillPace writes records of different inputs.
func fillPace(ctx context.Context, redis, name string, n int) error {
	messages := make([]serving.StreamMessage, n)
	for i := range messages {
		messages[i] = serving.StreamMessage{Stream: name, Key: fmt.Appendf(nil, "key-%d", i%100), Value: fmt.Appendf(nil, `{"uuid": "%d", "input": [%d, 1]}`, i, i)}
	}
	return brokers.RedisAt(redis).Write(ctx, messages)
}

// replicas says whether so many are ready.
func (l *localMode) replicas(n int) func(context.Context) error {
	return func(ctx context.Context) error {
		page, err := get(ctx, l.metrics)
		if ready := sum(page, "topsail_sidecar_containers_ready{"); err == nil && ready < float64(n) {
			err = fmt.Errorf("%v of %d replicas are ready", ready, n)
		}
		return err
	}
}

// follow waits until n records have their results. The rate is that of the last nine in
// ten answers: the first ones find out what the replicas can do.
func (l *localMode) follow(ctx context.Context, n int) (rate float64, defaults int, err error) {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Minute)
	defer cancel()
	look := time.NewTicker(20 * time.Millisecond)
	defer look.Stop()
	var first, answered float64
	var began, ended time.Time
	for {
		page, err := get(ctx, l.metrics)
		if err != nil {
			return 0, 0, err
		}
		answered = sum(page, "topsail_stream_predict_seconds_count{")
		switch {
		case answered >= float64(n) && ended.IsZero():
			ended = time.Now()
		case answered >= float64(n)/10 && first == 0:
			first, began = answered, time.Now()
		}
		if done := sum(page, "topsail_stream_records_total{"); done >= float64(n) {
			return (answered - first) / ended.Sub(began).Seconds(), int(done - sum(page, `topsail_stream_records_total{result="predicted"`)), nil
		}
		select {
		case <-look.C:
		case <-ctx.Done():
			return 0, 0, fmt.Errorf("%v of %d records were answered", answered, n)
		}
	}
}
