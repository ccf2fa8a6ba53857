//go:build edge

package edge

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"math"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/topsail-serving/topsail/containers/gocontainer"
	"github.com/topsail-serving/topsail/serving"
)

// modelKind is the variable that makes a model of this program: sum, large or talk.
const modelKind = "EDGE_MODEL"

const (
	inputTakes = time.Millisecond
	largeBytes = 5 << 20
	partBytes  = 64 << 10
	partEvery  = 100 * time.Millisecond
)

// serveModel is the main function of a model's container.
func serveModel(kind string) int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	cfg, err := gocontainer.FromEnv()
	if err == nil && kind == "talk" {
		err = gocontainer.ServeStreams(ctx, cfg, talk)
	} else if err == nil {
		predict := sum
		if kind == "large" {
			predict = large()
		}
		err = gocontainer.Serve(ctx, cfg, predict)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "edge:", err)
		return 1
	}
	return 0
}

// sum answers the sum of an input, after a millisecond for each.
func sum(inputs []serving.Value) []gocontainer.Result {
	time.Sleep(time.Duration(len(inputs)) * inputTakes)
	results := make([]gocontainer.Result, len(inputs))
	for i, in := range inputs {
		total := 0.0
		for at := 0; at < len(in.Data); at += 8 {
			total += math.Float64frombits(binary.LittleEndian.Uint64(in.Data[at:]))
		}
		results[i].Output = serving.Number(total)
	}
	return results
}

// large answers 5 MB to any input.
func large() gocontainer.Predict {
	answer := serving.Text(strings.Repeat("x", largeBytes))
	return func(inputs []serving.Value) []gocontainer.Result {
		results := make([]gocontainer.Result, len(inputs))
		for i := range results {
			results[i].Output = answer
		}
		return results
	}
}

// talk answers a chat: with a word, or if it is to be endless, with parts until no one wants more.
func talk(ctx context.Context, q *gocontainer.Query, part func(...serving.Value) error) gocontainer.Result {
	if !bytes.Contains(q.Inputs[0].Data, []byte("endless")) {
		return gocontainer.Result{Output: serving.Text("yes")}
	}
	one := serving.Text(strings.Repeat("x", partBytes))
	for {
		if err := part(one); err != nil {
			return gocontainer.Result{Err: err}
		}
		select {
		case <-ctx.Done():
			return gocontainer.Result{Err: ctx.Err()}
		case <-time.After(partEvery):
		}
	}
}
