package main

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/topsail-serving/topsail/internal/adapter/kafkastream"
	"github.com/topsail-serving/topsail/serving"
)

const (
	minorityRate  = 60  // records a second
	minoritySlow  = 100 // every so manieth record takes long
	minorityKeys  = 100
	minorityTimes = 10 // so many times as many seconds as other runs take
	// minoritySettles is how many of the first records do not count: everything is new then, and Kafka makes its own topics.
	minoritySettles = 8 * minorityRate
)

// minorityModel takes two seconds for an input that says so.
const minorityModel = `
import time
def predict(inputs):
    for x in inputs:
        if x[0] > 0:
            time.sleep(2)
    return [1.0] * len(inputs)
`

// minority measures how long the others take when a few records take long, from producing a record to
// reading its committed result. Everything is as a user runs it: local mode, four replicas in Python.
func minority(ctx context.Context, b *bench) (figures []figure, err error) {
	return b.onBrokers(ctx, []string{"none", "key"}, b.minority, func(broker, order string, runs []recordTimes) []figure {
		p50, p99 := atMost(5), atMost(100)
		if order == "key" {
			p50, p99 = atMost(50), bar{}
		}
		return []figure{
			sampled(fmt.Sprintf("in %s, order %s: p50 of the others", broker, order), ms, p50, runs, recordTimes.median),
			sampled("… p99", ms, p99, runs, recordTimes.p99),
		}
	})
}

// onBrokers has each broker do each variant of a case, as many times as the bench has runs.
func (b *bench) onBrokers(ctx context.Context, variants []string, once func(context.Context, *streamBroker, string) (recordTimes, error), of func(broker, variant string, runs []recordTimes) []figure) (figures []figure, err error) {
	brokers, stop, err := b.brokers(ctx)
	defer stop()
	if err != nil {
		return nil, err
	}
	for _, one := range brokers {
		if one.setup.Kafka {
			if err := one.warm(ctx); err != nil {
				return nil, err
			}
		}
		for _, variant := range variants {
			var runs []recordTimes
			for range b.Runs {
				run, err := once(ctx, one, variant)
				if err != nil {
					return nil, fmt.Errorf("%s, %s: %w", one.name, variant, err)
				}
				b.say("  %-6s %-16s p50 %6.2f ms, p90 %7.2f ms, p99 %8.2f ms", one.name, variant, run.median(), run.quantile(0.9), run.p99())
				runs = append(runs, run)
			}
			figures = append(figures, of(one.name, variant, runs)...)
		}
	}
	return figures, nil
}

// warmCommits is how many transactions a Kafka has before it is measured. By then Java has compiled what they run, as in
// one that has served for minutes.
const warmCommits = 10_000

// warm has Kafka commit one record at a time, as in the runs that follow.
func (s *streamBroker) warm(ctx context.Context) error {
	const in, out = "warm.in", "warm.out"
	if err := s.make(ctx, in, out); err != nil {
		return err
	}
	if err := s.write(ctx, slices.Repeat([]serving.StreamMessage{{Stream: in, Value: []byte("1")}}, warmCommits)); err != nil {
		return err
	}
	broker := kafkastream.Broker{Addrs: []string{s.setup.Addr}, Log: slog.New(slog.DiscardHandler)}
	c, err := kafkastream.Join(broker, kafkastream.Group{Name: in, Member: "bench", Streams: []string{in}})
	if err != nil {
		return err
	}
	defer func() { _ = c.Close() }() // it has done what it was for
	for range warmCommits {
		records, err := c.Poll(ctx, 1)
		if err != nil {
			return err
		}
		result := serving.StreamResult{Record: &records[0], Messages: []serving.StreamMessage{{Stream: out, Value: records[0].Value}}}
		if _, err := c.Commit(ctx, []serving.StreamResult{result}); err != nil {
			return err
		}
	}
	return nil
}

// recordTimes is how long the records took that count, in order.
type recordTimes []time.Duration

func (r recordTimes) quantile(q float64) float64 {
	return float64(r[min(int(q*float64(len(r))), len(r)-1)]) / float64(time.Millisecond)
}

func (r recordTimes) median() float64 { return r.quantile(0.5) }
func (r recordTimes) p99() float64    { return r.quantile(0.99) }

func (b *bench) minority(ctx context.Context, s *streamBroker, order string) (run recordTimes, err error) {
	defer b.family.stop()
	s.runs++
	prefix := fmt.Sprintf("minority%d.", s.runs) // also of the group: a member that was killed stays in it for a while
	in, out, dead := prefix+"in", prefix+"out", prefix+"dead"
	if err := s.make(ctx, in, out, dead); err != nil {
		return nil, err
	}
	_, err = b.localModel(ctx, minorityModel, 4, func(model string) string {
		return fmt.Sprintf("[[app]]\nname = \"minority\"\ninput_type = \"doubles\"\nlatency_slo_micros = 5000000\nmodels = [\"minority\"]\n"+
			"[[model]]\nname = \"minority\"\nversion = \"1\"\ninput_type = \"doubles\"\nreplicas = 4\ncommand = [\"python3\", \"-m\", \"topsail\", %q]\n"+
			"[[stream]]\nname = %q\napp = \"minority\"\nbroker = %q\naddrs = [%q]\ninput = [%q]\noutput = %q\ndead_letter = %q\norder = %q\n",
			model+":predict", in, s.name, s.setup.Addr, in, out, dead, order)
	})
	if err != nil {
		return nil, err
	}
	n := minoritySettles + b.Seconds*minorityTimes*minorityRate
	slow := func(i int) bool { return i%minoritySlow == minoritySlow/2 }
	took, err := s.timed(ctx, in, out, minorityRate, n, func(i int) string {
		if slow(i) {
			return fmt.Sprintf("[1, %d]", i)
		}
		return fmt.Sprintf("[0, %d]", i)
	})
	if err != nil {
		return nil, err
	}
	for i := minoritySettles; i < n; i++ {
		if !slow(i) {
			run = append(run, took[i])
		}
	}
	slices.Sort(run)
	return run, nil
}

// timed writes n records, so many a second, and says how long each took until its result was read.
func (s *streamBroker) timed(ctx context.Context, in, out string, rate, n int, input func(i int) string) (took []time.Duration, err error) {
	results, err := s.follow(out)
	if err != nil {
		return nil, err
	}
	defer results.Close()
	w, err := s.writer()
	if err != nil {
		return nil, err
	}
	defer w.Close()
	chance := rand.New(rand.NewPCG(1, 2))
	group, ctx := errgroup.WithContext(ctx)
	written, read := make([]time.Time, n), make([]time.Time, n)
	group.Go(func() error {
		tick := time.NewTicker(time.Second / time.Duration(rate))
		defer tick.Stop()
		for i := range n {
			m := serving.StreamMessage{Stream: in, Key: fmt.Appendf(nil, "key-%d", chance.IntN(minorityKeys)), Value: fmt.Appendf(nil, `{"uuid": "%d", "input": %s}`, i, input(i))}
			written[i] = time.Now()
			if err := w.Write(ctx, []serving.StreamMessage{m}); err != nil {
				return err
			}
			<-tick.C
		}
		return nil
	})
	group.Go(func() error {
		for left := n; left > 0; {
			records, err := results.Next(ctx, n)
			if err != nil {
				return err
			}
			now := time.Now()
			for _, r := range records {
				var result struct {
					UUID    int  `json:"uuid,string"`
					Default bool `json:"default"`
				}
				if err := json.Unmarshal(r.Value, &result); err != nil {
					return err
				}
				if result.Default || !read[result.UUID].IsZero() {
					return fmt.Errorf("record %d has a default, or two results", result.UUID)
				}
				read[result.UUID] = now
				left--
			}
		}
		return nil
	})
	if err := group.Wait(); err != nil {
		return nil, err
	}
	for i := range n {
		took = append(took, read[i].Sub(written[i]))
	}
	return took, nil
}
