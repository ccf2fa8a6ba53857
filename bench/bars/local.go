package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
)

// localMode is Topsail as its users run it on one machine.
type localMode struct {
	*child
	query, metrics string // URLs
}

// localModel runs Topsail in local mode on a configuration, which gets the file with the code of a model in Python, until
// so many replicas are there.
func (b *bench) localModel(ctx context.Context, code string, replicas int, config func(model string) string) (*localMode, error) {
	dir, err := os.MkdirTemp(b.dir, "local")
	if err != nil {
		return nil, err
	}
	model, file := filepath.Join(dir, "model.py"), filepath.Join(dir, "topsail.toml")
	if err := os.WriteFile(model, []byte(code), 0o600); err != nil {
		return nil, err
	}
	if err := os.WriteFile(file, []byte(config(model)), 0o600); err != nil {
		return nil, err
	}
	l, err := b.local(ctx, dir, file)
	if err != nil {
		return nil, err
	}
	return l, eventually(ctx, l.replicas(replicas))
}

// local builds Topsail and runs it on a configuration, with its files in a folder.
func (b *bench) local(ctx context.Context, dir, config string) (*localMode, error) {
	program, err := b.topsail(ctx)
	if err != nil {
		return nil, err
	}
	return b.localOf(ctx, program, dir, config)
}

// topsail builds Topsail.
func (b *bench) topsail(ctx context.Context) (program string, err error) {
	program = filepath.Join(b.dir, "topsail")
	if out, err := exec.CommandContext(ctx, "go", "build", "-o", program, "github.com/topsail-serving/topsail/cmd/topsail").CombinedOutput(); err != nil {
		return "", fmt.Errorf("go build: %w\n%s", err, out)
	}
	return program, nil
}

// localOf runs a build of Topsail.
func (b *bench) localOf(ctx context.Context, program, dir, config string) (*localMode, error) {
	addrs, err := freeAddrs(3)
	if err != nil {
		return nil, err
	}
	cmd := exec.CommandContext(ctx, program, "local", "--config", config, "--data-dir", filepath.Join(dir, "data"),
		"--gateway-addr", addrs[0], "--web-addr", addrs[1], "--ops-addr", addrs[2], "--log-level", "error")
	c, err := b.family.start("topsail", cmd)
	if err != nil {
		return nil, err
	}
	return &localMode{child: c, query: "http://" + addrs[0], metrics: "http://" + addrs[2] + "/metrics"}, nil
}
