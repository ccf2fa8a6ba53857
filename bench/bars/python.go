package main

import (
	"bytes"
	"context"
	_ "embed"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
)

func python(ctx context.Context, b *bench) ([]figure, error) {
	inGo, err := b.stack(ctx, "Go container", setup{SLO: relaxed, CacheOff: true, Containers: []string{"noop"}})
	if err != nil {
		return nil, err
	}
	inPython, err := b.stack(ctx, "Python container", setup{SLO: relaxed, CacheOff: true, Containers: []string{"python"}})
	if err != nil {
		return nil, err
	}
	runs, err := alternate(b.Runs, b.driver(ctx, inGo, many), b.driver(ctx, inPython, many))
	if err != nil {
		return nil, err
	}
	busy := func(d drive) float64 { return 100 * d.CPU["container"].Seconds() / d.Elapsed.Seconds() }
	share := func(d drive) float64 { return 100 * d.share("container") }
	perAnswer := func(d drive) float64 { return d.cpuPerAnswer("container") }
	return []figure{
		sampled("Go container", perSecond, bar{}, runs[0], rate),
		sampled("Python container", perSecond, bar{}, runs[1], rate),
		compared("Python / Go", times, bar{}, runs[1], runs[0], rateOver),
		sampled("Python container, p99", ms, bar{}, runs[1], p99),
		sampled("Python container, processor time of an answer", micros, bar{}, runs[1], perAnswer),
		sampled("Python container, part of one core", percent, bar{}, runs[1], busy),
		sampled("Python container, part of all processor time", percent, bar{}, runs[1], share),
		sampled("Go container, part of all processor time", percent, bar{}, runs[0], share),
		sampled("default outputs", count, none(), append(runs[0], runs[1]...), defaults),
	}, nil
}

// noopPython is the no-op model in Python.
//
//go:embed noop.py
var noopPython []byte

// pythonContainer starts a container with the Python SDK.
func (b *bench) pythonContainer(ctx context.Context, s setup) (*child, error) {
	if out, err := exec.CommandContext(ctx, "python3", "-c", "import topsail").CombinedOutput(); err != nil {
		return nil, errors.New("python3 cannot import topsail: run `make bench`, which installs it, or `pip install ./containers/python`: " + lastLine(out))
	}
	args, err := b.pythonProgram(s.Containers[s.Place])
	if err != nil {
		return nil, err
	}
	id := modelVersion(s.Place)
	of, length := s.input()
	cmd := exec.CommandContext(ctx, "python3", args...)
	cmd.Env = append(os.Environ(),
		"TOPSAIL_SIDECAR="+s.Sidecar,
		"TOPSAIL_MODEL="+id.Model,
		"TOPSAIL_VERSION="+id.Version,
		fmt.Sprint("TOPSAIL_INPUT_TYPE=", of),
		fmt.Sprint("TOPSAIL_INPUT_LENGTH=", length),
		"TOPSAIL_REPLICA="+replicaName(s.Place),
	)
	return b.family.start("container", cmd)
}

// pythonProgram is what runs a container of a kind.
func (b *bench) pythonProgram(kind string) (args []string, err error) {
	if kind == "stages" {
		file, err := b.stagesFile()
		return []string{file}, err
	}
	source := filepath.Join(b.dir, "noop.py")
	return []string{"-m", "topsail", source + ":predict"}, os.WriteFile(source, noopPython, 0o600)
}

func lastLine(text []byte) string {
	text = bytes.TrimSpace(text)
	return string(text[bytes.LastIndexByte(text, '\n')+1:])
}
