//go:build bars

package main

import (
	"encoding/json"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/topsail-serving/topsail/web/api"
)

// recklessDigits is the example of digits with workers that die now and then, 25 at most, and
// with errors in its second stage. Its answer is the digit and two numbers of the embedding,
// which no two pictures have in common. With a number it prints as many pictures, some of them
// no good, and what a pipeline in one process that never dies says of each.
const recklessDigits = `
import base64, json, os, random, sys
import numpy as np
import digits, png, topsail

def mortal(stage, chance, most):
    class Mortal(stage):
        def predict(self, inputs):
            if "TOPSAIL_SIDECAR" in os.environ and random.random() < chance:
                with open(os.environ["DEATHS"], "a+") as log:
                    log.seek(0)
                    if log.read().count(stage.__name__) < most:
                        log.write(stage.__name__ + "\n")
                        log.flush()
                        os._exit(7)
            return super().predict(inputs)
    return Mortal

class Decode(mortal(digits.Decode, 0.002, 15)):
    pass

class Embed(mortal(digits.Embed, 0.05, 5)):
    def predict(self, pictures):
        bright = [p.mean() > 5.8 for p in pictures]
        return [topsail.Error("the picture is bright") if b else e for b, e in zip(bright, super().predict(pictures))]

class Classify(mortal(digits.Classify, 0.05, 5)):
    def predict(self, embedded):
        return [[float(o.value), float(e[0]), float(e[1])] for o, e in zip(super().predict(embedded), embedded)]

p = topsail.Pipeline()
p.add(Decode, workers=2, idempotent=True)
p.add(Embed, batch="aimd", idempotent=True)
p.add(Classify, batch=64, batch_delay=0.001)

def picture(i, held):
    noise = np.random.default_rng(i).integers(-9, 10, (8, 8))
    if i % 97 == 0:
        return b"no picture of %d" % i
    if i % 89 == 0:
        return png.write(np.zeros((8, 8 + i)))
    if i % 83 == 0:
        return png.write(np.zeros((8, 8)))
    return png.write(np.clip(held[i % len(held)].reshape(8, 8) * (255 / 16) + noise, 0, 255))

if len(sys.argv) > 1:
    import train
    held = train.split()[1]
    pictures = [picture(i, held) for i in range(int(sys.argv[1]))]
    for asked, told in zip(pictures, p.run_local(pictures, input_type="bytes")):
        good = isinstance(told, list)
        print(json.dumps({"picture": base64.b64encode(asked).decode(), "output": told if good else None, "why": "" if good else str(told)}))
elif __name__ == "__main__":
    topsail.serve(p, input_type="bytes")
`

// pictured is what a pipeline that never dies says of a picture: the answer, or why there is none.
type pictured struct {
	Picture string // base64
	Output  []float64
	Why     string
}

// Ten thousand pictures at once, for stages whose workers die: each query is answered once, as
// its picture is when it is alone, or with the reason why not. What a death took is sent again,
// until each picture has its answer.
func TestAPipelineOfRecklessDigits(t *testing.T) {
	const pictures = 10_000
	dir := t.TempDir()
	writeModel(t, dir, recklessDigits)
	env := digitsEnv(t, dir)
	runPython(t, dir, env, "-m", "train", filepath.Join(dir, "models"))
	var alone []pictured
	for said := json.NewDecoder(strings.NewReader(runPython(t, dir, env, "moody.py", strconv.Itoa(pictures)))); said.More(); {
		var one pictured
		if err := said.Decode(&one); err != nil {
			t.Fatal(err)
		}
		alone = append(alone, one)
	}
	if len(alone) != pictures {
		t.Fatalf("%d pictures of %d", len(alone), pictures)
	}

	config := strings.NewReplacer(`"doubles"`, `"bytes"`, "1000000", "300000000", "env = {", "replicas = 3\nenv = {").Replace(sumConfig(dir, `["python3", "moody.py"]`)) // a queue holds 4,096
	for name, value := range env {
		config = strings.Replace(config, "env = {", fmt.Sprintf("env = { %s = %q,", name, value), 1)
	}
	in := start(t, dir, config).ready()
	o := operate(t, in)
	o.ready("sum:1", 3)
	began := time.Now()
	counts := map[string]int{}
	for open := alone; len(open) > 0 && !t.Failed(); {
		until(t, "replica of the stages", func() bool {
			return slices.ContainsFunc(o.replicas("sum:1"), func(r api.Replica) bool { return r.State == "ready" })
		})
		open = askPictures(t, in, open, counts)
	}
	deaths, err := os.ReadFile(env["DEATHS"])
	if err != nil {
		t.Fatal("no worker has died: ", err)
	}
	died := map[string]int{}
	for stage := range strings.FieldsSeq(string(deaths)) {
		died[stage]++
	}
	t.Logf("%v in %v; workers that died: %v", counts, time.Since(began).Round(time.Millisecond), died)
	if counts["right"]+counts["no good"] != pictures || counts["no good"] == 0 || died["Decode"] == 0 {
		t.Errorf("%v of %d pictures", counts, pictures)
	}
}

// askPictures sends pictures, all at once, counts what became of them, and returns those without
// an answer of the stages.
func askPictures(t *testing.T, in *instance, pictures []pictured, counts map[string]int) (open []pictured) {
	const each = 100
	var asking sync.WaitGroup
	var mu sync.Mutex
	for some := range slices.Chunk(pictures, each) {
		asking.Go(func() {
			inputs := make([]string, len(some))
			for i, p := range some {
				inputs[i] = p.Picture
			}
			answers := askAll(in, inputs)
			mu.Lock()
			defer mu.Unlock()
			for i, a := range answers {
				became := some[i].judge(t, a)
				counts[became]++
				if became == "died" || became == "refused" {
					open = append(open, some[i])
				}
			}
		})
	}
	asking.Wait()
	return open
}

// judge says what became of the query of a picture.
func (p pictured) judge(t *testing.T, a answer) string {
	why := a.Explanation
	switch {
	case !a.Default && p.Why == "" && p.same(a.Output):
		return "right"
	case a.Default && p.Why != "" && (why == "Model error: "+p.Why || why == "Dropped: "+p.Why):
		return "no good"
	case a.Default && (strings.HasPrefix(why, "Container error: stage ") || why == "No connected models found for query"):
		return "died"
	case a.Default && strings.HasPrefix(why, "Refused: "): // full: other replicas are without a stage
		return "refused"
	}
	t.Errorf("the answer to a picture of %v %q is %+v", p.Output, p.Why, a)
	return "wrong"
}

// same tells apart all pictures of the test, which differ by a thousandth at least.
func (p pictured) same(output any) bool {
	got, _ := output.([]any)
	return slices.EqualFunc(got, p.Output, func(x any, y float64) bool {
		number, ok := x.(float64)
		return ok && math.Abs(number-y) < 1e-6
	})
}

// digitsEnv is what the example of digits needs of its environment.
func digitsEnv(t *testing.T, dir string) map[string]string {
	t.Helper()
	sdk, err := filepath.Abs("../../containers/python/src")
	if err != nil {
		t.Fatal(err)
	}
	example, err := filepath.Abs("../../examples/pipeline/digits")
	if err != nil {
		t.Fatal(err)
	}
	return map[string]string{
		"PYTHONPATH": sdk + ":" + example, "PYTHONDONTWRITEBYTECODE": "1", "OPENBLAS_NUM_THREADS": "1",
		"DIGITS_MODELS": filepath.Join(dir, "models"), "DEATHS": filepath.Join(dir, "deaths"),
	}
}

// runPython runs a program that needs numpy and scikit-learn, and returns what it printed.
func runPython(t *testing.T, dir string, env map[string]string, args ...string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "python3", args...)
	cmd.Dir, cmd.Env = dir, os.Environ()
	for name, value := range env {
		cmd.Env = append(cmd.Env, name+"="+value)
	}
	var errs strings.Builder
	cmd.Stderr = &errs
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%v: %v\n%s\nthe python3 on PATH must have what the tests need: run them by `make test-system`", args, err, errs.String())
	}
	return string(out)
}
