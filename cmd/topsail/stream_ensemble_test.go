//go:build bars

package main

import (
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/topsail-serving/topsail/serving"
	"github.com/topsail-serving/topsail/stream"
	"github.com/topsail-serving/topsail/stream/records"
)

// parityModels say whether a number is odd. The quick one is wrong about multiples of ten,
// and surer than the careful one about multiples of four; the stalled one answers
// after ten seconds.
const parityModels = `
import time, topsail

def says(x, confidence):
    return topsail.Output("odd" if x % 2 else "even", confidence=confidence)

def quick(inputs):
    return [says(x[0] + (x[0] % 10 == 0), 0.95 if x[0] % 4 == 0 else 0.7) for x in inputs]

def careful(inputs):
    time.sleep(0.02)
    return [says(x[0], 0.9) for x in inputs]

def stalled(inputs):
    time.sleep(10)
    return [says(x[0], 1.0) for x in inputs]
`

// parityPolicies are those of the apps, each of which is linked to all three models.
var parityPolicies = map[string]string{
	"consensus":  `{ kind = "vote", within_micros = 300000 }`,
	"guaranteed": `{ kind = "guaranteed", models = ["quick", "careful", "stalled"], within_micros = 300000 }`,
	"fastest":    `{ kind = "first_acceptable", confidence = 0.6 }`,
	"quality":    `{ kind = "best", within_micros = 300000 }`,
}

func parityConfig(t *testing.T, dir string, b *streamBroker) string {
	t.Helper()
	sdk, err := filepath.Abs("../../containers/python/src")
	if err != nil {
		t.Fatal(err)
	}
	var config strings.Builder
	for app, policy := range parityPolicies {
		fmt.Fprintf(&config, `
[[app]]
name = %[1]q
input_type = "doubles"
output_type = "label"
default_output = "none"
latency_slo_micros = 2000000
models = ["careful", "quick", "stalled"]
policy = %[2]s

[[stream]]
name = %[1]q
app = %[1]q
input = ["%[1]s.in"]
output = "%[1]s.out"
dead_letter = "%[1]s.dead"
%[3]s`, app, policy, b.lines)
	}
	for _, model := range []string{"careful", "quick", "stalled"} {
		fmt.Fprintf(&config, `
[[model]]
name = %[1]q
version = "1"
input_type = "doubles"
command = ["python3", "-m", "topsail", "moody.py:%[1]s"]
env = { TOPSAIL_TEST = %[2]q, PYTHONPATH = %[3]q }
`, model, dir, sdk)
	}
	return config.String()
}

// TestEnsemblesOfAStream has one model of three stall. Each record gets a result of those
// that answer, in the time that the policy of its app allows.
func TestEnsemblesOfAStream(t *testing.T) {
	onBrokers(t, func(t *testing.T, b *streamBroker) {
		const count, stall = 300, 10 * time.Second
		dir := t.TempDir()
		writeModel(t, dir, parityModels)
		for app := range parityPolicies {
			b.create(t, app+".in", app+".out", app+".dead")
		}
		in := start(t, dir, parityConfig(t, dir, b), "--gateway-cache-bytes", "0").ready()
		person := operate(t, in)
		for _, model := range []string{"careful:1", "quick:1", "stalled:1"} {
			person.ready(model, 1)
		}
		each := 1
		if b.kafka() {
			each = 30 // a producer of Kafka takes its time to connect
		}
		source := time.NewTicker(time.Duration(each) * 10 * time.Millisecond)
		defer source.Stop()
		for from := 0; from < count; from += each {
			if err := b.write(t.Context(), numbers(from, from+each)); err != nil {
				t.Fatal(err)
			}
			<-source.C
		}
		for app := range parityPolicies {
			in.until("results of "+app, func() bool { return len(b.read(t, app+".out")) == count })
			asked := map[string]time.Time{}
			for _, r := range b.read(t, app+".in") {
				asked[uuid(t, r)] = r.At
			}
			var times []time.Duration
			whole := 0
			for _, r := range b.read(t, app+".out") {
				result, err := records.ParseResponse(r.Value, stream.JSON)
				if err != nil {
					t.Fatal(err)
				}
				times = append(times, r.At.Sub(asked[result.UUID]))
				delete(asked, result.UUID)
				if parity(t, app, result) {
					whole++
				}
			}
			if len(asked) > 0 || whole < count*3/4 {
				t.Errorf("%s: %d records have no result, and of %d results %d are of both models that answer", app, len(asked), count, whole)
			}
			slices.Sort(times)
			p50, p99, worst := times[count/2], times[count*99/100], times[count-1]
			t.Logf("%s: %d of %d of both models; a result comes after %v, at p99 after %v, at most after %v", app, whole, count, p50, p99, worst)
			if worst >= stall/2 {
				t.Errorf("%s: a result comes after %v, as if the stalled model had been waited for", app, worst)
			}
		}
	})
}

// numbers are records that ask all apps about the numbers from one to another.
func numbers(from, to int) []serving.StreamMessage {
	var all []serving.StreamMessage
	for app := range parityPolicies {
		for i := from; i < to; i++ {
			all = append(all, serving.StreamMessage{Stream: app + ".in", Value: fmt.Appendf(nil, `{"uuid": "%d", "input": [%d]}`, i, i)})
		}
	}
	return all
}

func uuid(t *testing.T, r serving.StreamRecord) string {
	t.Helper()
	request, err := records.ParseRequest(r.Value, stream.JSON)
	if err != nil {
		t.Fatal(err)
	}
	return request.UUID
}

// parity wants the result of a number to be what the policy of the app makes of the models
// that have answered, and to say who has not. It says whether two of the three have: on a
// busy machine one that answers may miss the limit, too.
func parity(t *testing.T, app string, r records.Response) (whole bool) {
	t.Helper()
	i, err := strconv.Atoi(r.UUID)
	if err != nil {
		t.Fatal(err)
	}
	odd := map[bool]string{false: `"even"`, true: `"odd"`}
	says := map[string]string{"careful": odd[i%2 == 1], "quick": odd[i%2 == 1 || i%10 == 0]}
	careful, quick := !slices.Contains(r.Missing, "careful:1"), !slices.Contains(r.Missing, "quick:1")
	winner := "careful" // of a vote that is even, for it is linked first
	if !careful || quick && app == "quality" && i%4 == 0 || app == "fastest" && r.Model == "quick" {
		winner = "quick"
	}
	if r.Default || string(r.Output) != says[winner] || app != "consensus" && r.Model != winner {
		t.Errorf("%s: the result of %d is %+v", app, i, r)
	}
	// Who cannot change the answer any more is not missing in it.
	waited := app == "guaranteed" || app == "quality" || app == "consensus" && i%10 == 0
	if waited && !slices.Contains(r.Missing, "stalled:1") {
		t.Errorf("%s: the result of %d does not say that a model is missing: %+v", app, i, r)
	}
	return careful && quick
}
