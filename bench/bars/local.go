package main

import (
	"context"
	"fmt"
	"os/exec"
	"path/filepath"
)

// localMode is Topsail as its users run it on one machine.
type localMode struct {
	*child
	query, metrics string // URLs
}

// local builds Topsail and runs it on a configuration, with its files in a folder.
func (b *bench) local(ctx context.Context, dir, config string) (*localMode, error) {
	addrs, err := freeAddrs(3)
	if err != nil {
		return nil, err
	}
	program := filepath.Join(b.dir, "topsail")
	if out, err := exec.CommandContext(ctx, "go", "build", "-o", program, "github.com/topsail-serving/topsail/cmd/topsail").CombinedOutput(); err != nil {
		return nil, fmt.Errorf("go build: %w\n%s", err, out)
	}
	cmd := exec.CommandContext(ctx, program, "local", "--config", config, "--data-dir", filepath.Join(dir, "data"),
		"--gateway-addr", addrs[0], "--web-addr", addrs[1], "--ops-addr", addrs[2], "--log-level", "error")
	c, err := b.family.start("topsail", cmd)
	if err != nil {
		return nil, err
	}
	return &localMode{child: c, query: "http://" + addrs[0], metrics: "http://" + addrs[2] + "/metrics"}, nil
}
