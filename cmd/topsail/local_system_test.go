//go:build system

package main

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	v1 "github.com/topsail-serving/topsail/rpc/v1"
	"github.com/topsail-serving/topsail/rpc/v1/v1test"
)

// TestToZeroAndBack is the cluster's scheduler on child processes.
func TestToZeroAndBack(t *testing.T) {
	dir := t.TempDir()
	config := sumConfig(dir, quoted(programs.gosum)) + "scale = { min = 0, max = 2, idle_micros = 4000000 }\n"
	config = strings.Replace(config, "default_output", "cold_start_micros = 60000000\ndefault_output", 1)
	in := start(t, dir, config).ready()
	in.until("zero", func() bool { return len(in.descendants()) == 0 })
	if a := in.ask(`{"input": [1, 2.5]}`); a.Default || a.Output != 3.5 {
		t.Errorf("the query that wakes it got %+v", a)
	}
	if n := len(in.descendants()); n == 0 {
		t.Error("nothing runs, and something has answered")
	}
	if err := in.stop(os.Interrupt); err != nil {
		t.Error(err)
	}
}

func TestAVersion1ContainerIsServed(t *testing.T) {
	container := v1test.Start(t, func(b v1.Batch) []float64 {
		out := make([]float64, len(b.Inputs))
		for i := range b.Inputs {
			out[i] = float64(len(b.Inputs[i]) / 8)
		}
		return out
	})
	dir := t.TempDir()
	config := appConfig("sum", "doubles", "-1", time.Second, "count") + fmt.Sprintf(`
[[model]]
name = "count"
version = "1"
input_type = "doubles"
container_addr = %q
protocol = "v1"
connections = 2
`, container.Addr())
	in := start(t, dir, config).ready()
	if a := in.ask(`{"input": [7, 7, 7]}`); a.Default || a.Output != 3.0 {
		t.Errorf("got %+v", a)
	}
}
