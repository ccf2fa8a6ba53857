//go:build system

package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/topsail-serving/topsail/test/require"
	"github.com/topsail-serving/topsail/test/wait"
)

// scaled is the bundle of a model that multiplies, and whose memory is a block of so many
// MiB. All have modules of the same names.
func scaled(t *testing.T, factor float64, mib int) string {
	t.Helper()
	manifest := fmt.Sprintf(`{"runtime": "python", "python": %q, "entry": "model:predict", "input_type": "doubles", "example": [1]}`, pythonMinor(t))
	return pack(t, manifest, map[string][]byte{
		"model.py":  fmt.Appendf(nil, "import factor\nblock = bytearray(b'x') * (%d << 20)\n\ndef predict(inputs):\n    return [factor.FACTOR * v[0] for v in inputs]\n", mib),
		"factor.py": fmt.Appendf(nil, "FACTOR = %v\n", factor),
	})
}

// hosting starts Topsail with a host of so many replicas.
func hosting(t *testing.T, replicas, memoryMB int) (*instance, *operator) {
	t.Helper()
	config := fmt.Sprintf("[[model]]\nname = \"small\"\nversion = \"1\"\nreplicas = %d\nhost.memory_mb = %d\nenv.PYTHONPATH = %q\n", replicas, memoryMB, sdk(t))
	in := start(t, t.TempDir(), config)
	return in, operate(t, in)
}

func sdk(t *testing.T) string {
	t.Helper()
	path, err := filepath.Abs("../../containers/python/src")
	require.NoError(t, err)
	return path
}

// TestManyModelsInOneReplica deploys models to a host that has no room for all of them.
func TestManyModelsInOneReplica(t *testing.T) {
	t.Parallel()
	in, o := hosting(t, 1, 96)
	const models = 6 // of 16 MiB each, beside a Python of some 40
	for i := range models {
		name := fmt.Sprint("times", i)
		o.do("deploy", name, "--bundle", scaled(t, float64(i), 16), "--hosted-by", "small", "--app", name, "--slo", "2s", "--default", "none")
	}
	for round := range 2 {
		for i := range models {
			o.answers(fmt.Sprint("times", i), fmt.Sprintf("[%d]", 10+round), fmt.Sprintf("%d.0", i*(10+round)))
		}
	}
	if held := in.series("topsail_host_models{"); held < 2 || held >= models {
		t.Errorf("%v of %d models are held", held, models)
	}
	if loads := in.series(`topsail_host_loads_total{model="small",replica="small:1/0",result="loaded"`); loads > 2*models {
		t.Errorf("%v loads for %d queries", loads, 2*models)
	}
	if used, unloads := in.series(`topsail_host_memory_bytes{model="small",of="used"`), in.series("topsail_host_unloads_total{"); used > 96<<20 || unloads < models {
		t.Errorf("%v bytes are used, and %v models were unloaded", used, unloads)
	}
	wait.Until(t, "version that serves", func() bool {
		return strings.Contains(string(o.fetch("/models/times1/versions/1")), `"serving":true`)
	})
	if out := o.do("version", "list", "times1"); !strings.Contains(out, "in small") {
		t.Errorf("the table of versions is\n%s", out)
	}

	o.do("deploy", "times1", "--bundle", scaled(t, 100, 1), "--hosted-by", "small")
	wait.Until(t, "new version", func() bool {
		a := in.to("times1", fmt.Sprintf(`{"input": [%d]}`, time.Now().UnixNano()%1000))
		return !a.Default && a.Output.(float64) >= 100
	})

	t.Run("its process dies", func(t *testing.T) {
		for _, pid := range in.descendants() {
			if command, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid)); strings.Contains(string(command), "topsail\x00host") {
				syscall.Kill(pid, syscall.SIGKILL)
			}
		}
		wait.Until(t, "answer from a process that was started again", func() bool {
			a := in.to("times2", fmt.Sprintf(`{"input": [%d]}`, 1000+time.Now().UnixNano()%1000))
			return !a.Default
		})
	})
}

// series reads the first series of the metrics page that begins so.
func (in *instance) series(prefix string) float64 {
	in.t.Helper()
	values, page := in.allSeries(prefix)
	if len(values) == 0 {
		in.t.Fatalf("there is no %s in\n%s", prefix, page)
	}
	return values[0]
}

// total adds up the series of the metrics page that begin so.
func (in *instance) total(prefix string) (sum float64) {
	in.t.Helper()
	values, _ := in.allSeries(prefix)
	for _, v := range values {
		sum += v
	}
	return sum
}

func (in *instance) allSeries(prefix string) (values []float64, page string) {
	in.t.Helper()
	page = fetched(in.t, in.line("Metrics"))
	for line := range strings.Lines(page) {
		if strings.HasPrefix(line, prefix) {
			value, err := strconv.ParseFloat(strings.TrimSpace(line[strings.LastIndexByte(line, ' '):]), 64)
			require.NoError(in.t, err)
			values = append(values, value)
		}
	}
	return values, page
}

// pythonMinor is the version of python3, such as 3.11.
func pythonMinor(t *testing.T) string {
	t.Helper()
	minor, err := exec.Command("python3", "-c", "import sys; print('%d.%d' % sys.version_info[:2], end='')").Output()
	require.NoError(t, err)
	return string(minor)
}
