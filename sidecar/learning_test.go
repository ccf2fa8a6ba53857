package sidecar

import (
	"context"
	"encoding/binary"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/topsail-serving/topsail/containers/gocontainer"
	"github.com/topsail-serving/topsail/rpc"
	"github.com/topsail-serving/topsail/serving"
	"github.com/topsail-serving/topsail/test/require"
	"github.com/topsail-serving/topsail/test/wait"
)

// The model of both containers: its accuracy is how much of its feedback had the label
// that it would have given, which is the input itself.
const pythonLearner = `
class Learner:
    seen = right = 0

    def predict(self, inputs):
        return [float(x[0]) for x in inputs]

    def correct(self, feedback, user):
        if user == "eve":
            raise ValueError("not from her")
        self.seen += len(feedback)
        self.right += sum(x[0] == y for x, y in feedback)

    def accuracy(self):
        return self.right / self.seen
`

type goLearner struct{ seen, right float64 }

func firstElement(v serving.Value) float64 {
	return math.Float64frombits(binary.LittleEndian.Uint64(v.Data))
}

func (l *goLearner) predict(inputs []serving.Value) []gocontainer.Result {
	results := make([]gocontainer.Result, len(inputs))
	for i, in := range inputs {
		results[i].Output = serving.Number(firstElement(in))
	}
	return results
}

func (l *goLearner) Correct(_ context.Context, feedback []gocontainer.Feedback, user string) error {
	if user == "eve" {
		panic("not from her")
	}
	for _, f := range feedback {
		l.seen++
		if firstElement(f.Input) == firstElement(f.Label) {
			l.right++
		}
	}
	return nil
}

func (l *goLearner) Accuracy() float64 { return l.right / l.seen }

func startPython(t *testing.T, sidecar string) {
	dir := t.TempDir()
	sdk, err := filepath.Abs("../containers/python/src")
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(filepath.Join(dir, "model.py"), []byte(pythonLearner), 0o600))
	cmd := exec.CommandContext(t.Context(), "python3", "-m", "topsail", "model.py:Learner")
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "PYTHONPATH="+sdk, "PYTHONDONTWRITEBYTECODE=1", "TOPSAIL_SIDECAR="+sidecar,
		"TOPSAIL_MODEL=m", "TOPSAIL_VERSION=1", "TOPSAIL_INPUT_TYPE=doubles", "TOPSAIL_REPLICA=m/0")
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.WaitDelay = 10 * time.Second
	require.NoError(t, cmd.Start())
	t.Cleanup(func() { _ = cmd.Wait() }) // by then the test's context has ended, and with it the container
}

func startGo(t *testing.T, sidecar string) {
	var learner goLearner
	var container sync.WaitGroup
	container.Go(func() {
		cfg := gocontainer.Config{Sidecar: sidecar, Model: serving.ModelID{Model: "m", Version: "1"}, InputType: serving.Doubles, Corrector: &learner}
		if err := gocontainer.Serve(t.Context(), cfg, learner.predict); err != nil {
			t.Error(err)
		}
	})
	t.Cleanup(container.Wait)
}

// Real containers, in the middle of queries.
func TestAContainerLearnsFromFeedback(t *testing.T) {
	for name, start := range map[string]func(t *testing.T, sidecar string){"Python": startPython, "Go": startGo} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newSocketRig(t, Config{})
			nc := r.dial.container()
			sidecar := nc.RemoteAddr().String()
			nc.Close()
			start(t, sidecar)
			g := r.gateway()
			wait.Until(t, "the model is ready", func() bool { return g.state(0) == rpc.StateReady })
			right, wrong := on(1, "ann"), on(2, "bob")
			wrong.Label = on(3, "").Label
			for i := range 300 {
				g.ask(0, -1, tagged(float64(i)))
				g.teach(0, right, wrong, right, wrong, right)
			}
			g.teach(0, on(4, "eve"))
			wait.Until(t, "every query is answered", func() bool { return g.unanswered() == 0 })
			if got := g.statuses(); got[rpc.StatusOK] != 300 {
				t.Errorf("%v", got)
			}
			for _, line := range []string{
				`topsail_sidecar_feedback_total{model="m",replica="m/0",result="forwarded",version="1"} 1501`,
				`accuracy{model="m",replica="m/0",version="1"} 0.6`,
				`correct_failures{model="m",replica="m/0",version="1"} 1`,
			} {
				wait.Until(t, line, func() bool { return r.scraped(line) })
			}
		})
	}
}
