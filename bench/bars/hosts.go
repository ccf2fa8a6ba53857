package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing/fstest"
	"time"

	"github.com/topsail-serving/topsail/internal/retry"
	"github.com/topsail-serving/topsail/serving"
	"github.com/topsail-serving/topsail/serving/bundle"
)

const (
	hostedModels = 2000
	hostReplicas = 4
	hostMemoryMB = 64
	hostedBytes  = 128 << 10 // of the weights of each model
	zipf         = 1.1       // the share of the n-th model goes with n^-1.1
	askRate      = 150       // a second, for as long as an overload run
	firstRate    = 40        // of first questions, each of which loads a model
	askers       = 256       // connections at most
)

// hostObjective is long enough for a model that has to be loaded.
const hostObjective = time.Second

// hosts asks many small models that few replicas hold, far more than fit into their
// memory: first each once, then as their popularity has it, then only the most popular.
func hosts(ctx context.Context, b *bench) ([]figure, error) {
	var runs []hostRun
	for i := range b.Runs {
		run, err := b.hostRun(ctx)
		if err != nil {
			return nil, err
		}
		b.say("  run %d: %.1f %% warm, p99 %.1f ms, first %.1f ms, %d MiB at most", i+1, 100*run.warm, run.mixed.p99(), run.first.p99(), run.memory>>20)
		runs = append(runs, run)
	}
	active, err := b.activeFigures(ctx)
	if err != nil {
		return nil, err
	}
	return append([]figure{
		sampled(fmt.Sprintf("models held of %d", hostedModels), count, bar{}, runs, func(r hostRun) float64 { return float64(r.held) }),
		sampled("questions that found their model loaded", percent, bar{}, runs, func(r hostRun) float64 { return 100 * r.warm }),
		sampled("the most popular, p50", ms, bar{}, runs, func(r hostRun) float64 { return r.popular.quantile(0.5) }),
		sampled("the most popular, p99", ms, bar{}, runs, func(r hostRun) float64 { return r.popular.p99() }),
		sampled("first questions, each loading its model, p50", ms, bar{}, runs, func(r hostRun) float64 { return r.first.quantile(0.5) }),
		sampled("first questions, p99", ms, bar{}, runs, func(r hostRun) float64 { return r.first.p99() }),
		sampled("all by popularity, p50", ms, bar{}, runs, func(r hostRun) float64 { return r.mixed.quantile(0.5) }),
		sampled("all by popularity, p99", ms, bar{}, runs, func(r hostRun) float64 { return r.mixed.p99() }),
		sampled("memory of a replica at most, of 64 MiB", mebibytes, atMost(hostMemoryMB), runs, func(r hostRun) float64 { return float64(r.memory) / (1 << 20) }),
		sampled("default outputs", count, bar{}, runs, func(r hostRun) float64 { return float64(r.first.defaults + r.mixed.defaults + r.popular.defaults) }),
		sampled("wrong outputs", count, none(), runs, func(r hostRun) float64 { return float64(r.first.wrong + r.mixed.wrong + r.popular.wrong) }),
	}, active...), nil
}

// hostRun is what one run found.
type hostRun struct {
	first, mixed, popular asked
	warm                  float64 // the share of warm questions, by popularity
	held                  int     // models at the end of that, in all replicas
	memory                int64   // resident, of the container that had most at some time
}

// hostRun starts Topsail afresh and asks.
func (b *bench) hostRun(ctx context.Context) (run hostRun, err error) {
	t, err := b.startHosts(ctx)
	if err != nil {
		return run, err
	}
	defer b.family.stop()
	watching, stop := context.WithCancel(ctx)
	most := make(chan int64, 1)
	go func() { most <- watchMemory(watching, t.containers) }()
	order := rand.Perm(hostedModels)
	run.first = t.ask(ctx, firstRate, hostedModels/firstRate, func(i int) int { return order[i%hostedModels] })
	before, err := t.counts(ctx)
	if err != nil {
		stop()
		return run, errors.Join(err, ctx.Err())
	}
	popularity := rand.NewZipf(rand.New(rand.NewPCG(1, uint64(b.Seconds))), zipf, 1, hostedModels-1)
	var drawing sync.Mutex
	draw := func(int) int {
		drawing.Lock()
		defer drawing.Unlock()
		return order[popularity.Uint64()]
	}
	run.mixed = t.ask(ctx, askRate, b.OverloadSeconds, draw)
	after, err := t.counts(ctx)
	run.popular = t.ask(ctx, askRate, b.Seconds, func(i int) int { return order[i%20] })
	stop()
	run.memory = <-most
	warm, cold := after.warm-before.warm, after.cold-before.cold
	run.warm, run.held = warm/(warm+cold), after.held
	return run, err
}

// hostTarget is a running Topsail with a host and its models.
type hostTarget struct {
	query, metrics string
	client         *http.Client
	containers     []int // process ids
}

// hostOf is a host and its models.
type hostOf struct {
	replicas, memoryMB, models int
	objective                  time.Duration
	code                       string
	weights                    int // bytes of the weights of each model
}

// startHosts starts the host of many models, of which few fit.
func (b *bench) startHosts(ctx context.Context) (*hostTarget, error) {
	dir, err := os.MkdirTemp(b.dir, "hosts")
	if err != nil {
		return nil, err
	}
	return b.startHost(ctx, dir, hostOf{hostReplicas, hostMemoryMB, hostedModels, hostObjective, hostedCode, hostedBytes})
}

// startHost writes the models and the configuration, and runs Topsail on them.
func (b *bench) startHost(ctx context.Context, dir string, host hostOf) (*hostTarget, error) {
	config, err := host.write(dir)
	if err != nil {
		return nil, err
	}
	l, err := b.local(ctx, dir, config)
	if err != nil {
		return nil, err
	}
	t := &hostTarget{
		query: l.query, metrics: l.metrics,
		client: &http.Client{Timeout: 10 * time.Second, Transport: &http.Transport{MaxIdleConnsPerHost: askers, MaxConnsPerHost: askers}},
	}
	return t, eventually(ctx, func(ctx context.Context) error {
		page, err := get(ctx, t.metrics)
		if err != nil {
			return err
		}
		if n := sum(page, `topsail_sidecar_containers_ready{model="small"`); n != float64(host.replicas) {
			return fmt.Errorf("%v of %d replicas of the host are ready", n, host.replicas)
		}
		t.containers, err = descendants(l.cmd.Process.Pid, "topsail\x00host")
		return err
	})
}

// hostedCode is the code of every model, in a module of the same name.
const hostedCode = `
import array, pathlib

weights = array.array("d", pathlib.Path(__file__).with_name("weights.bin").read_bytes())

def predict(inputs):
    return [weights[0] + sum(v) for v in inputs]
`

// write writes the bundles of all models, and a configuration with them.
func (h hostOf) write(dir string) (config string, err error) {
	python, err := exec.Command("python3", "-c", "import sys; print('%d.%d' % sys.version_info[:2], end='')").Output()
	if err != nil {
		return "", fmt.Errorf("ask python3 for its version: %w", err)
	}
	var text bytes.Buffer
	fmt.Fprintf(&text, "[[model]]\nname = \"small\"\nversion = \"1\"\nhost.memory_mb = %d\nreplicas = %d\n", h.memoryMB, h.replicas)
	for i := range h.models {
		path := filepath.Join(dir, fmt.Sprintf("g%d.zip", i))
		digest, err := h.bundle(path, string(python), i)
		if err != nil {
			return "", err
		}
		fmt.Fprintf(&text, "\n[[app]]\nname = \"g%d\"\ninput_type = \"doubles\"\nlatency_slo_micros = %d\ndefault_output = \"none\"\nmodels = [\"g%d\"]\ncache.off = true\n", i, h.objective.Microseconds(), i)
		fmt.Fprintf(&text, "\n[[model]]\nname = \"g%d\"\nversion = \"1\"\ninput_type = \"doubles\"\nbundle = %q\nbundle_url = %q\nhosted_by = \"small\"\n", i, digest, path)
	}
	config = filepath.Join(dir, "topsail.toml")
	return config, os.WriteFile(config, text.Bytes(), 0o600)
}

// bundle writes the bundle of a model, whose first weight is its number.
func (h hostOf) bundle(path, python string, number int) (digest string, err error) {
	weights := make([]byte, h.weights)
	rng := rand.New(rand.NewPCG(2, uint64(number)))
	for i := range weights {
		weights[i] = byte(rng.Uint32())
	}
	first := serving.Number(float64(number)).Data
	copy(weights, first)
	var archive bytes.Buffer
	m := &bundle.Manifest{Runtime: "python", Python: python, Entry: "model:predict", InputType: serving.Doubles}
	if err := bundle.Write(&archive, m, fstest.MapFS{"model.py": {Data: []byte(h.code)}, "weights.bin": {Data: weights}}); err != nil {
		return "", err
	}
	if digest, err = bundle.Digest(bytes.NewReader(archive.Bytes())); err != nil {
		return "", err
	}
	return digest, os.WriteFile(path, archive.Bytes(), 0o600)
}

// asked is what became of questions.
type asked struct {
	took     []time.Duration // of those with the right output
	defaults int             // the defaults, and questions that failed
	wrong    int
}

func (a *asked) p99() float64 { return a.quantile(0.99) }

// quantile is in milliseconds.
func (a *asked) quantile(q float64) float64 {
	if len(a.took) == 0 {
		return 0
	}
	slices.Sort(a.took)
	return a.took[int(q*float64(len(a.took)-1))].Seconds() * 1000
}

// ask asks at a steady rate, whatever the answers take, which of the models which says.
func (t *hostTarget) ask(ctx context.Context, rate, seconds int, which func(i int) int) asked {
	var all sync.WaitGroup
	var mu sync.Mutex
	var found asked
	began := time.Now()
	for i := range rate * seconds {
		due := began.Add(time.Duration(i) * time.Second / time.Duration(rate))
		if !retry.Sleep(ctx, time.Until(due)) {
			return found
		}
		model := which(i)
		all.Go(func() {
			output, err := t.one(ctx, model, i)
			took := time.Since(due)
			mu.Lock()
			defer mu.Unlock()
			switch want := float64(model + i + 1); {
			case err != nil || output == "none":
				found.defaults++
			case output != strconv.FormatFloat(want, 'f', 1, 64):
				found.wrong++
			default:
				found.took = append(found.took, took)
			}
		})
	}
	all.Wait()
	return found
}

var outputText = regexp.MustCompile(`"output":"?([^,"}]*)`)

// one asks a model one thing.
func (t *hostTarget) one(ctx context.Context, model, x int) (output string, err error) {
	body := fmt.Sprintf(`{"input": [%d, 1]}`, x)
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, fmt.Sprintf("%s/g%d/predict", t.query, model), strings.NewReader(body))
	if err != nil {
		return "", err
	}
	request.Header.Set("Content-Type", "application/json")
	reply, err := t.client.Do(request)
	if err != nil {
		return "", err
	}
	defer reply.Body.Close()
	text, err := io.ReadAll(io.LimitReader(reply.Body, maxReply))
	found := outputText.FindSubmatch(text)
	if err != nil || found == nil {
		return "", fmt.Errorf("%s: %.200s: %w", reply.Status, text, err)
	}
	return string(found[1]), nil
}

// hostCounts are from the metrics page.
type hostCounts struct {
	warm, cold float64
	held       int
}

func (t *hostTarget) counts(ctx context.Context) (hostCounts, error) {
	page, err := get(ctx, t.metrics)
	const questions = `topsail_gateway_hosted_questions_total{state=`
	return hostCounts{warm: sum(page, questions+`"warm"}`), cold: sum(page, questions+`"cold"}`), held: int(sum(page, "topsail_host_models{"))}, err
}

// sum adds up the series of a metrics page whose names begin so.
func sum(page []byte, prefix string) (total float64) {
	for line := range strings.Lines(string(page)) {
		if strings.HasPrefix(line, prefix) {
			value, err := strconv.ParseFloat(strings.TrimSpace(line[strings.LastIndexByte(line, ' ')+1:]), 64)
			if err == nil {
				total += value
			}
		}
	}
	return total
}

// watchMemory is what the process that took most had at some time, in bytes.
func watchMemory(ctx context.Context, pids []int) (most int64) {
	every := time.NewTicker(100 * time.Millisecond)
	defer every.Stop()
	for {
		for _, pid := range pids {
			if bytes, err := resident(pid); err == nil {
				most = max(most, bytes)
			}
		}
		select {
		case <-every.C:
		case <-ctx.Done():
			return most
		}
	}
}

// descendants are the processes below one whose command line holds a text.
func descendants(root int, text string) (pids []int, err error) {
	if runtime.GOOS != "linux" {
		return nil, errors.New("this case reads /proc, which is Linux's")
	}
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return nil, err
	}
	parents, matching := map[int]int{}, []int{}
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil {
			continue
		}
		stat, _ := os.ReadFile(filepath.Join("/proc", e.Name(), "stat")) // it may have ended
		fields := bytes.Fields(stat[bytes.LastIndexByte(stat, ')')+1:])
		if len(fields) < 2 {
			continue
		}
		parents[pid], _ = strconv.Atoi(string(fields[1]))
		command, _ := os.ReadFile(filepath.Join("/proc", e.Name(), "cmdline"))
		if bytes.Contains(command, []byte(text)) {
			matching = append(matching, pid)
		}
	}
	for _, pid := range matching {
		for at := pid; at > 1; at = parents[at] {
			if at == root {
				pids = append(pids, pid)
				break
			}
		}
	}
	return pids, nil
}

// freeAddrs are addresses that are free.
func freeAddrs(n int) (addrs []string, err error) {
	for range n {
		ln, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return nil, err
		}
		defer ln.Close()
		addrs = append(addrs, ln.Addr().String())
	}
	return addrs, nil
}
