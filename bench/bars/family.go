package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"syscall"
	"time"
)

// startWithin bounds the wait for a process to listen, or to be ready.
const startWithin = 30 * time.Second

// family owns all processes of a run. It is used by one goroutine.
type family struct{ children []*child }

// child is one process. The addresses are those that it listens on.
type child struct {
	name string
	cmd  *exec.Cmd
	listening
}

// listening is what a role reports on its standard output once it listens.
type listening struct {
	Addr       string `json:"addr"`                 // for queries, or for gateways
	Containers string `json:"containers,omitempty"` // for containers
	Ops        string `json:"ops,omitempty"`        // for metrics and profiles
	GRPC       string `json:"grpc,omitempty"`       // for calls
}

// start runs a command until it is stopped or ctx ends.
func (f *family) start(name string, cmd *exec.Cmd) (*child, error) {
	cmd.Stderr = os.Stderr
	cmd.SysProcAttr = dependent()
	c := &child{name: name, cmd: cmd}
	cmd.Cancel = c.kill
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("cannot start the %s: %w", name, err)
	}
	f.children = append(f.children, c)
	return c, nil
}

// role starts this program as one of the measured processes and waits until it
// listens.
func (b *bench) role(ctx context.Context, name string, s setup) (*child, error) {
	config, err := json.Marshal(s)
	if err != nil {
		return nil, err
	}
	r, w, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer r.Close()
	cmd := exec.CommandContext(ctx, b.self, "-role", name, "-config", string(config))
	cmd.Stdout = w
	c, err := b.family.start(name, cmd)
	w.Close()
	if err != nil {
		return nil, err
	}
	if err := r.SetReadDeadline(time.Now().Add(startWithin)); err != nil {
		return nil, err
	}
	line, err := bufio.NewReader(r).ReadBytes('\n')
	if err == nil {
		err = json.Unmarshal(line, &c.listening)
	}
	if err != nil {
		return nil, fmt.Errorf("the %s did not start to listen: %w", name, err)
	}
	return c, nil
}

// kill ends the process and what it started, at once.
func (c *child) kill() error { return syscall.Kill(-c.cmd.Process.Pid, syscall.SIGKILL) }

// stop ends all processes, those that were started last first, and waits until
// they are gone.
func (f *family) stop() {
	for _, c := range slices.Backward(f.children) {
		_ = c.kill() // it may be dead already
		_ = c.cmd.Wait()
	}
	f.children = nil
}
