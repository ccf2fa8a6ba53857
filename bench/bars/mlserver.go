package main

import (
	"context"
	_ "embed"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// mlserverPython is where `make bench` installs MLServer, by itself: it needs other libraries than our package.
const mlserverPython = "build/python/mlserver/bin/python"

// mlserver compares images as binary data, with a no-op model in Python, with MLServer. That takes them as JSON
// only over REST.
func mlserver(ctx context.Context, b *bench) ([]figure, error) {
	ours, err := b.launch(ctx, "images", setup{SLO: relaxed, CacheOff: true, Containers: []string{"python"}, Images: true})
	if err != nil {
		return nil, err
	}
	_, ours, err = b.images(ours)
	if err != nil {
		return nil, err
	}
	theirs, err := b.mlserver(ctx)
	if err != nil {
		return nil, err
	}
	if theirs, _, err = b.images(theirs); err != nil {
		return nil, err
	}
	theirs.name = "MLServer, JSON"
	const few = 16
	runs, err := alternate(b.Runs, b.driver(ctx, ours, few), b.driver(ctx, theirs, few))
	if err != nil {
		return nil, err
	}
	p99Over := func(run, other drive) float64 { return p99(run) / p99(other) }
	return []figure{
		sampled("infer with binary data, an image of 3 × 224 × 224 float32", perSecond, bar{}, runs[0], rate),
		sampled("MLServer, the same as JSON", perSecond, bar{}, runs[1], rate),
		compared("Topsail / MLServer", times, atLeast(2), runs[0], runs[1], rateOver),
		sampled("infer with binary data, p99", ms, bar{}, runs[0], p99),
		sampled("MLServer, p99", ms, bar{}, runs[1], p99),
		compared("Topsail / MLServer, p99", times, atMost(1), runs[0], runs[1], p99Over),
		sampled("default outputs", count, none(), runs[0], defaults),
	}, nil
}

//go:embed mlserver.py
var mlserverModel []byte

// mlserver starts MLServer with the no-op model.
func (b *bench) mlserver(ctx context.Context) (*target, error) {
	if out, err := exec.CommandContext(ctx, mlserverPython, "-c", "import mlserver").CombinedOutput(); err != nil {
		return nil, fmt.Errorf("there is no MLServer in build/python/mlserver: run `make bench`, which installs it: %w: %s", err, lastLine(out))
	}
	ports, err := freePorts(3) // MLServer cannot choose one by itself
	if err != nil {
		return nil, err
	}
	dir := filepath.Join(b.dir, "mlserver")
	if err := os.Mkdir(dir, 0o700); err != nil {
		return nil, err
	}
	for name, content := range map[string]any{
		"settings.json":       map[string]any{"host": "127.0.0.1", "http_port": ports[0], "grpc_port": ports[1], "metrics_port": ports[2], "parallel_workers": 0}, // its workers do not start with today's uvloop
		"model-settings.json": map[string]any{"name": appName, "implementation": "noop_model.Noop"},
	} {
		text, err := json.Marshal(content)
		if err != nil {
			return nil, err
		}
		if err := os.WriteFile(filepath.Join(dir, name), text, 0o600); err != nil {
			return nil, err
		}
	}
	if err := os.WriteFile(filepath.Join(dir, "noop_model.py"), mlserverModel, 0o600); err != nil {
		return nil, err
	}
	program, err := filepath.Abs(mlserverPython)
	if err != nil {
		return nil, err
	}
	cmd := exec.CommandContext(ctx, program, "-c", "from mlserver.cli import main; main()", "start", dir)
	cmd.Dir = dir
	c, err := b.family.start("mlserver", cmd)
	if err != nil {
		return nil, err
	}
	t := &target{name: "MLServer", url: fmt.Sprintf("http://127.0.0.1:%d%s", ports[0], queryPath), children: []*child{c}}
	return t, eventually(ctx, func(ctx context.Context) error {
		_, err := get(ctx, strings.Replace(t.url, queryPath, "/v2/models/"+appName+"/ready", 1))
		return err
	})
}
