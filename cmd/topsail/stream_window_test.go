//go:build system

package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// slowModel does not answer as long as a file is not there.
const slowModel = `
import os, time
def predict(inputs):
    while not os.path.exists(os.environ["GO_ON"]):
        time.sleep(0.02)
    return [sum(x) for x in inputs]
`

// TestSlowRecord has one record not end. Results of all records but those of its key are there at once, and are not
// made again when the process is killed and comes back. In the end every record has one result, in the order of its key.
func TestSlowRecord(t *testing.T) {
	onBrokers(t, func(t *testing.T, b *streamBroker) {
		const count, slow = 600, 8
		b.create(t, "in", "out", "dead")
		dir := t.TempDir()
		goOn := filepath.Join(dir, "go-on")
		writeModel(t, dir, slowModel)
		sdk, err := filepath.Abs("../../containers/python/src")
		if err != nil {
			t.Fatal(err)
		}
		config := sumConfig(dir, quoted(programs.gosum)) + fmt.Sprintf(`
[streams]
name = "one"

[[app]]
name = "slow"
input_type = "doubles"
latency_slo_micros = 60000000
models = ["slow"]

[[model]]
name = "slow"
version = "1"
input_type = "doubles"
command = ["python3", "-m", "topsail", "moody.py:predict"]
env = { GO_ON = %q, PYTHONPATH = %q }
`, goOn, sdk) + streamConfig(b, "in", "out", "dead", "apps = { slow = 'slow' }\n")
		in := start(t, dir, config).ready()
		messages := asks("in", 0, count)
		messages[slow].Value = fmt.Appendf(nil, `{"uuid": "%d", "input": [%d, 1], "app": "slow"}`, slow, slow)
		if err := b.write(t.Context(), messages); err != nil {
			t.Fatal(err)
		}
		const others = count - count/streamKeys + 1 // and the one of its key that comes before it
		in.until("the results of the other keys", func() bool { return len(b.sums(t, "out", true)) == others })
		if err := in.stop(syscall.SIGKILL); err == nil {
			t.Fatal("it ended by itself")
		}
		again := start(t, dir, config).ready()
		done := func() float64 {
			return again.total(`topsail_stream_records_total{result="predicted",stream="sums"`)
		}
		again.until("the slow record", func() bool { return again.total("topsail_stream_in_flight_seconds{") > 1 })
		if n := done(); n > 0 || len(b.sums(t, "out", true)) != others {
			t.Errorf("%v records are done again", n)
		}
		if err := os.WriteFile(goOn, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		again.until("all results", func() bool { return len(b.sums(t, "out", true)) == count })
		again.until("the count", func() bool { return done() == count-others })
		if dead := b.read(t, "dead"); len(dead) > 0 || strings.Contains(again.output(), "panic") {
			t.Errorf("%d dead letters", len(dead))
		}
	})
}
