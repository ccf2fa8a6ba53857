//go:build system

package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

// recklessStages scales, then shifts. Some inputs fail at the second stage, some are
// dropped at the first, and now and then a worker dies with what it has; one does so
// for sure.
const recklessStages = `
import itertools, os, random, topsail

batches = itertools.count(1)

def scale(inputs):
    if random.random() < 0.004:
        os._exit(7)
    return [topsail.Drop("a multiple of 11") if x[0] % 11 == 0 else float(x[0]) * 2 for x in inputs]

def shift(numbers):
    if random.random() < 0.02 or (next(batches) == 3 and first()):
        os._exit(8)
    return [topsail.Error("a multiple of 7") if (x / 2) % 7 == 0 else x + 3 for x in numbers]

def first():
    try:
        os.mkdir(os.path.join(os.path.dirname(__file__), "death"))
    except FileExistsError:
        return False
    return True

p = topsail.Pipeline()
p.add(scale, workers=2, batch=8, idempotent=True)
p.add(shift, workers=2, batch="aimd")
topsail.serve(p, input_type="doubles")
`

// Ten thousand queries at once on two stages of two workers each that die all the time:
// each query is answered once, with what belongs to it or with the reason why not.
func TestAPipelineOfRecklessWorkers(t *testing.T) {
	const requests, each = 100, 100
	dir := t.TempDir()
	writeModel(t, dir, recklessStages)
	config := strings.ReplaceAll(sumConfig(dir, `["python3", "moody.py"]`), "1000000", "300000000")
	config = strings.Replace(config, "env = {", "replicas = 3\nenv = {", 1) // a queue holds 4,096
	config = strings.Replace(config, "env = {", fmt.Sprintf("env = { PYTHONPATH = %q,", sdk(t)), 1)
	in := start(t, dir, config).ready()
	operate(t, in).ready("sum:1", 3)
	var asking sync.WaitGroup
	var mu sync.Mutex
	counts := map[string]int{}
	for r := range requests {
		asking.Go(func() {
			for i, a := range in.askMany(r*each+1, each) {
				mu.Lock()
				counts[judge(t, r*each+1+i, a)]++
				mu.Unlock()
			}
		})
	}
	asking.Wait()
	t.Log(counts)
	sum := 0
	for _, n := range counts {
		sum += n
	}
	if sum != requests*each || counts["right"] < requests*each/4 {
		t.Errorf("%v of %d: that was no test", counts, requests*each)
	}
	if _, err := os.Stat(filepath.Join(dir, "death")); err != nil {
		t.Errorf("nobody died: %v", err) // whoever did may have left no trace: the gateway asks another replica once
	}
	in.until("answers as before", func() bool { return in.ask(`{"input": [1], "no_cache": true}`).Output == 5.0 })
}

// askMany asks n numbers from first on in one request.
func (in *instance) askMany(first, n int) []answer {
	inputs := make([][]float64, n)
	for i := range inputs {
		inputs[i] = []float64{float64(first + i)}
	}
	body, err := json.Marshal(map[string]any{"input_batch": inputs})
	if err != nil {
		in.t.Error(err)
		return nil
	}
	_, text, err := in.post("/sum/predict", string(body))
	var got struct {
		List []answer `json:"batch_predictions"`
	}
	if err == nil {
		err = json.Unmarshal([]byte(text), &got)
	}
	if err != nil || len(got.List) != len(inputs) {
		in.t.Errorf("%d of %d answers: %v: %.200s", len(got.List), len(inputs), err, text)
		return nil
	}
	return got.List
}

// judge says what became of the query of a number.
func judge(t *testing.T, x int, a answer) string {
	why := a.Explanation
	switch {
	case !a.Default && a.Output == float64(2*x+3) && x%7 != 0 && x%11 != 0:
		return "right"
	case a.Default && why == "Dropped: stage scale: a multiple of 11" && x%11 == 0:
		return "dropped"
	case a.Default && why == "Model error: stage shift: Error: a multiple of 7" && x%7 == 0:
		return "failed"
	case a.Default && (strings.HasPrefix(why, "Container error: stage ") || why == "No connected models found for query"):
		return "died"
	case a.Default && strings.HasPrefix(why, "Refused: "): // full: other replicas are without a stage
		return "refused"
	}
	t.Errorf("%d: %+v", x, a)
	return "wrong"
}
