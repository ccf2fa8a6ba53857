// Command gosum is a model container in Go: it answers the sum of its input and of its
// arguments. With GOSUM_FAILS set it fails on every input instead, to try what happens then.
package main

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"os"
	"os/signal"
	"strconv"
	"syscall"

	"github.com/topsail-serving/topsail/containers/gocontainer"
	"github.com/topsail-serving/topsail/serving"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	cfg, err := gocontainer.FromEnv()
	more, wrong := sumOf(os.Args[1:])
	if err = errors.Join(err, wrong); err == nil {
		answer := func(inputs []serving.Value) []gocontainer.Result { return predict(inputs, more) }
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

func sumOf(arguments []string) (sum float64, err error) {
	for _, text := range arguments {
		n, err := strconv.ParseFloat(text, 64)
		if err != nil {
			return 0, fmt.Errorf("the argument %q is not a number: give numbers to add to every sum", text)
		}
		sum += n
	}
	return sum, nil
}

func fail(inputs []serving.Value) []gocontainer.Result {
	results := make([]gocontainer.Result, len(inputs))
	for i := range results {
		results[i].Err = errors.New("GOSUM_FAILS is set")
	}
	return results
}

func predict(inputs []serving.Value, more float64) []gocontainer.Result {
	results := make([]gocontainer.Result, len(inputs))
	for i, in := range inputs {
		sum := more
		for at := 0; at < len(in.Data); at += 8 {
			sum += math.Float64frombits(binary.LittleEndian.Uint64(in.Data[at:]))
		}
		results[i].Output = serving.Number(sum)
	}
	return results
}
