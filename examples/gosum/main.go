// Command gosum is a model container in Go: it answers the sum of its input. With
// GOSUM_FAILS set it fails on every input instead, to try what happens then.
package main

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"os"
	"os/signal"
	"syscall"

	"topsail/containers/gocontainer"
	"topsail/serving"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	cfg, err := gocontainer.FromEnv()
	if err == nil {
		answer := predict
		if os.Getenv("GOSUM_FAILS") != "" {
			answer = fail
		}
		err = gocontainer.Serve(ctx, cfg, answer)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "gosum:", err)
		os.Exit(1)
	}
}

func fail(inputs []serving.Value) []gocontainer.Result {
	results := make([]gocontainer.Result, len(inputs))
	for i := range results {
		results[i].Err = errors.New("GOSUM_FAILS is set")
	}
	return results
}

func predict(inputs []serving.Value) []gocontainer.Result {
	results := make([]gocontainer.Result, len(inputs))
	for i, in := range inputs {
		sum := 0.0
		for at := 0; at < len(in.Data); at += 8 {
			sum += math.Float64frombits(binary.LittleEndian.Uint64(in.Data[at:]))
		}
		results[i].Output = serving.Number(sum)
	}
	return results
}
