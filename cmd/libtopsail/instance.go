package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"sync"
	"time"

	"github.com/topsail-serving/topsail/cmd/topsail/config"
	"github.com/topsail-serving/topsail/cmd/topsail/local"
	"github.com/topsail-serving/topsail/internal/obs"
	"github.com/topsail-serving/topsail/serving"
)

// options say what an instance opens. The zero value is what `topsail local` opens without flags.
type options struct {
	config  string        // the configuration file; empty: as config.Load finds one
	dataDir string        // empty: that of the configuration
	program string        // topsail, which guards the processes of models and runs bundles; empty: that of PATH
	within  time.Duration // how long models may take to start; 0: they are not waited for
}

// instance is an open Topsail. Its methods may be called concurrently.
type instance struct {
	local  *local.Embedded
	limits config.Gateway

	stop    context.CancelFunc // of all that runs
	ended   chan error         // gets what Run returns
	calling context.Context    // of calls, which cancel ends
	cancel  context.CancelFunc

	mu     sync.RWMutex // locked by each call for reading, and to close
	closed bool
}

// open starts an instance.
func open(o options) (*instance, error) {
	flags := map[string]string{}
	if o.dataDir != "" {
		flags["data-dir"] = o.dataDir
	}
	cfg, err := config.Load(o.config, os.Environ(), flags)
	if err != nil {
		return nil, err
	}
	log, err := obs.NewLogger(os.Stderr, cfg.Log.Level, cfg.Log.Format)
	if err != nil {
		return nil, err
	}
	for _, warning := range cfg.Warnings {
		log.Warn(warning)
	}
	if o.program == "" {
		o.program = "topsail"
	}
	program, err := exec.LookPath(o.program)
	if err != nil {
		return nil, fmt.Errorf("cannot find the program topsail, which runs the processes of models: %w: put it on the PATH, or name it when opening", err)
	}
	i := &instance{limits: cfg.Gateway, ended: make(chan error, 1)}
	ctx, stop := context.WithCancel(context.Background())
	i.stop = stop
	i.calling, i.cancel = context.WithCancel(ctx)
	if i.local, err = local.Open(ctx, cfg, local.Options{Guard: []string{program, "guard", "--"}, Runtime: []string{program, "runtime"}, Log: log}); err != nil {
		stop()
		return nil, err
	}
	go func() { i.ended <- i.local.Run(ctx) }()
	if err := i.await(o.within); err != nil {
		return nil, errors.Join(err, i.close())
	}
	return i, nil
}

// await waits for the apps, and for models if they get any time.
func (i *instance) await(within time.Duration) error {
	if within == 0 {
		ctx, done := context.WithTimeout(i.calling, time.Second)
		defer done()
		i.local.AwaitCatalog(ctx, 0)
		return nil
	}
	ctx, done := context.WithTimeout(i.calling, within)
	defer done()
	return i.local.AwaitModels(ctx)
}

var errClosed = errors.New("this instance is closed: open another one")

// begin is a call's context, and the app that its body is for. When there is no error, the call ends with done.
func (i *instance) begin(name string, body []byte) (ctx context.Context, app *serving.App, done func(), err error) {
	i.mu.RLock()
	if err = errClosed; !i.closed {
		app, err = i.app(name, body)
	}
	if err != nil {
		i.mu.RUnlock()
		return nil, nil, nil, err
	}
	return i.calling, app, i.mu.RUnlock, nil
}

// close waits for calls, which it cancels after the drain timeout of the gateway, and stops all that open started. It
// returns when no goroutine and no process of it is left.
func (i *instance) close() error {
	cancelling := time.AfterFunc(i.limits.DrainTimeout, i.cancel)
	defer cancelling.Stop()
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.closed {
		return errClosed
	}
	i.closed = true
	i.stop()
	return <-i.ended
}
