// Command gostages is a model container in Go whose model is a pipeline of two stages:
// one doubles every number, and drops inputs with numbers below zero; the next adds
// three.
package main

import (
	"context"
	"encoding/binary"
	"fmt"
	"math"
	"os"
	"os/signal"
	"slices"
	"syscall"

	"github.com/topsail-serving/topsail/containers/gocontainer"
	"github.com/topsail-serving/topsail/serving"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	cfg, err := gocontainer.FromEnv()
	if err == nil {
		err = gocontainer.ServePipeline(ctx, cfg,
			gocontainer.Stage{
				Stage:   serving.Stage{Name: "scale", Workers: 2},
				Predict: positive(each(func(x float64) float64 { return 2 * x })),
			},
			gocontainer.Stage{
				Stage:   serving.Stage{Name: "shift", Batch: serving.StageBatch{Strategy: "aimd"}, Idempotent: true},
				Predict: each(func(x float64) float64 { return x + 3 }),
			})
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "gostages:", err)
		os.Exit(1)
	}
}

// each applies f to every number of every input.
func each(f func(float64) float64) gocontainer.Predict {
	return func(inputs []serving.Value) []gocontainer.Result {
		results := make([]gocontainer.Result, len(inputs))
		for i, in := range inputs {
			data := make([]byte, 0, len(in.Data))
			for _, x := range numbers(in) {
				data = binary.LittleEndian.AppendUint64(data, math.Float64bits(f(x)))
			}
			results[i].Output = serving.Value{DType: serving.Float64, Shape: []int{len(data) / 8}, Data: data}
		}
		return results
	}
}

// positive drops the inputs with numbers below zero.
func positive(predict gocontainer.Predict) gocontainer.Predict {
	return func(inputs []serving.Value) []gocontainer.Result {
		results := predict(inputs)
		for i, in := range inputs {
			if slices.Min(numbers(in)) < 0 {
				results[i].Err = gocontainer.Drop("a number is below zero")
			}
		}
		return results
	}
}

// numbers are those of an input, which has at least one.
func numbers(in serving.Value) []float64 {
	list := make([]float64, len(in.Data)/8)
	for i := range list {
		list[i] = math.Float64frombits(binary.LittleEndian.Uint64(in.Data[8*i:]))
	}
	return list
}
