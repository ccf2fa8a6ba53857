// Command gosum is a model container in Go: it answers the sum of its input.
package main

import (
	"context"
	"encoding/binary"
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
		err = gocontainer.Serve(ctx, cfg, predict)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "gosum:", err)
		os.Exit(1)
	}
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
