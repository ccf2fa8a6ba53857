package main

import (
	"fmt"
	"math"
	"math/rand/v2"
	"time"

	"github.com/topsail-serving/topsail/containers/gocontainer"
	"github.com/topsail-serving/topsail/serving"
)

// batchTime is what the model "sleep" takes for a batch of any size.
const batchTime = 2 * time.Millisecond

// The times that the model "pareto" takes for a batch.
const (
	paretoLeast = time.Millisecond
	paretoShape = 1.1
)

// spins make the model "spin" take some 0.2 ms of processor time for each input.
const spins = 200_000

// modelOutput is what every model of the benchmarks answers.
const modelOutput = 0.5

// containerModel makes the model of a Go container.
func containerModel(kind string) (gocontainer.Predict, error) {
	switch kind {
	case "noop":
		return noop, nil
	case "sleep":
		return func(inputs []serving.Value) []gocontainer.Result {
			time.Sleep(batchTime)
			return noop(inputs)
		}, nil
	case "spin":
		return spin, nil
	case "sure":
		return sure, nil
	case "stall":
		return func([]serving.Value) []gocontainer.Result { select {} }, nil
	case "pareto":
		return func(inputs []serving.Value) []gocontainer.Result {
			time.Sleep(paretoTime())
			return sure(inputs)
		}, nil
	}
	return nil, fmt.Errorf("there is no container %q", kind)
}

func noop(inputs []serving.Value) []gocontainer.Result {
	results, output := make([]gocontainer.Result, len(inputs)), serving.Number(modelOutput)
	for i := range results {
		results[i].Output = output
	}
	return results
}

// sure is noop with a confidence.
func sure(inputs []serving.Value) []gocontainer.Result {
	results, confidence := noop(inputs), 0.9
	for i := range results {
		results[i].Confidence = &confidence
	}
	return results
}

// paretoTime draws from a Pareto distribution: one in a hundred is above 66 ms.
func paretoTime() time.Duration {
	return time.Duration(float64(paretoLeast) / math.Pow(1-rand.Float64(), 1/paretoShape))
}

func spin(inputs []serving.Value) []gocontainer.Result {
	results := noop(inputs)
	for i := range results {
		x := uint64(i)
		for range spins {
			x = x*6364136223846793005 + 1442695040888963407
		}
		if x == 0 { // as good as never; keeps the compiler from leaving the work out
			results[i].Output = serving.Number(0)
		}
	}
	return results
}
