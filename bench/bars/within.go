package main

import (
	"context"
	"fmt"
	"slices"
	"strings"
)

const (
	withinRate    = 100            // records a second
	withinSettles = 8 * withinRate // see minoritySettles
	withinTimes   = 5              // so many times as many seconds as other runs take
)

// withinModels answer after 1 and 20 ms, and hardly ever. The second one does not agree with the first for an input in ten.
const withinModels = `
import time
from topsail import Output

def fast(inputs):
    time.sleep(0.001)
    return [Output(1.0, confidence=0.9) for x in inputs]

def slow(inputs):
    time.sleep(0.020)
    return [Output(1.0 if x[0] % 10 else 2.0, confidence=0.95) for x in inputs]

def stalls(inputs):
    time.sleep(10)
    return [Output(1.0, confidence=0.99) for x in inputs]
`

// within measures how long records take of an app that waits at most 100 ms for its models, of which one stalls.
func within(ctx context.Context, b *bench) (figures []figure, err error) {
	return b.onBrokers(ctx, []string{"guaranteed", "best", "vote", "first_acceptable"}, b.within, func(broker, kind string, runs []recordTimes) []figure {
		return []figure{
			sampled(fmt.Sprintf("in %s, %s within 100 ms: p50", broker, kind), ms, bar{}, runs, recordTimes.median),
			sampled("… p99", ms, atMost(110), runs, recordTimes.p99),
		}
	})
}

func (b *bench) within(ctx context.Context, s *streamBroker, kind string) (run recordTimes, err error) {
	defer b.family.stop()
	s.runs++
	prefix := fmt.Sprintf("within%d.", s.runs)
	in, out, dead := prefix+"in", prefix+"out", prefix+"dead"
	if err := s.make(ctx, in, out, dead); err != nil {
		return nil, err
	}
	_, err = b.localModel(ctx, withinModels, 3, func(model string) string {
		var all strings.Builder
		fmt.Fprintf(&all, "[[app]]\nname = \"within\"\ninput_type = \"doubles\"\nlatency_slo_micros = 1000000\nmodels = [\"fast\", \"slow\", \"stalls\"]\n"+
			"policy = { kind = %q, within_micros = 100000 }\n[[stream]]\nname = %q\napp = \"within\"\nbroker = %q\naddrs = [%q]\ninput = [%q]\noutput = %q\ndead_letter = %q\n",
			kind, in, s.name, s.setup.Addr, in, out, dead)
		for _, name := range []string{"fast", "slow", "stalls"} {
			fmt.Fprintf(&all, "[[model]]\nname = %q\nversion = \"1\"\ninput_type = \"doubles\"\ncommand = [\"python3\", \"-m\", \"topsail\", %q]\n", name, model+":"+name)
		}
		return all.String()
	})
	if err != nil {
		return nil, err
	}
	took, err := s.timed(ctx, in, out, withinRate, withinSettles+b.Seconds*withinTimes*withinRate, func(i int) string { return fmt.Sprintf("[%d]", i) })
	if err != nil {
		return nil, err
	}
	run = took[withinSettles:]
	slices.Sort(run)
	return run, nil
}
