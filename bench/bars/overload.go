package main

import (
	"context"
	"net/http"
	"time"

	"github.com/topsail-serving/topsail/bench/load"
	"github.com/topsail-serving/topsail/serving"
)

// promise is the SLO of overloaded apps.
const promise = 50 * time.Millisecond

func overload(ctx context.Context, b *bench) ([]figure, error) {
	ceiling, err := load.MaxRate(ctx)
	if err != nil {
		return nil, err
	}
	timed := setup{SLO: promise, CacheOff: true, Containers: []string{"sleep"}, Batch: serving.BatchSpec{MaxSize: 8}}
	computing := setup{SLO: promise, CacheOff: true, Containers: []string{"spin"}}
	runs, err := alternate(b.Runs, b.flooder(ctx, "2 ms for a batch of at most 8", timed, ceiling), b.flooder(ctx, "0.2 ms of computing an input", computing, ceiling))
	if err != nil {
		return nil, err
	}
	figures := floodFigures("2 ms a batch", runs[0])
	figures = append(figures, reported(floodFigures("computing", runs[1]))...)
	return append(figures, figure{What: "generator alone, at most", Unit: perSecond, Samples: []float64{ceiling}}), nil
}

// floodFigures are those of one model.
func floodFigures(model string, runs []flood) []figure {
	figures := []figure{
		sampled("capacity, closed loop", perSecond, bar{}, runs, func(f flood) float64 { return f.capacity }),
		sampled("queries sent / capacity", times, bar{}, runs, func(f flood) float64 { return float64(f.report.Sent) / f.report.Elapsed.Seconds() / f.capacity }),
		sampled("queries not answered", count, none(), runs, func(f flood) float64 {
			return float64(f.report.Sent + f.report.Unsent - f.report.Statuses[http.StatusOK])
		}),
		sampled("predictions / capacity", times, atLeast(0.8), runs, func(f flood) float64 { return f.report.Goodput / f.capacity }),
		sampled("p50", ms, bar{}, runs, func(f flood) float64 { return millis(f.report.Latency.P50) }),
		sampled("p99.9", ms, atMost(millis(promise)+5), runs, func(f flood) float64 { return millis(f.report.Latency.P999) }),
		sampled("memory of gateway and sidecar", mebibytes, bar{}, runs, func(f flood) float64 { return float64(f.end) / (1 << 20) }),
		sampled("memory at the end / early", times, atMost(1.1), runs, func(f flood) float64 { return float64(f.end) / float64(f.settled) }),
		sampled("container, part of one core", percent, bar{}, runs, func(f flood) float64 { return 100 * f.container }),
		sampled("generator's lateness, p99", ms, bar{}, runs, func(f flood) float64 { return millis(f.report.Lateness.P99) }),
		sampled("generator's lateness, p99.9", ms, bar{}, runs, func(f flood) float64 { return millis(f.report.Lateness.P999) }),
	}
	for i := range figures {
		figures[i].What = model + ": " + figures[i].What
	}
	return figures
}

// reported takes off the bars, but for those that hold in every run. A model that
// computes shares its two cores with the generator, which leaves it less than in
// the closed loop: what it then reaches is reported and not part of a bar.
func reported(figures []figure) []figure {
	for i := range figures {
		if !figures[i].Bar.Every {
			figures[i].Bar = bar{}
		}
	}
	return figures
}
