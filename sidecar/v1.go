package sidecar

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/topsail-serving/topsail/internal/retry"
	"github.com/topsail-serving/topsail/sidecar/container"
)

const (
	dialV1Within     = 5 * time.Second
	shutdownV1Within = time.Second
	endV1Within      = time.Minute // of a container that hangs, after which it is tried again
)

// serveV1 keeps one connection to a version 1 container.
func (s *Sidecar) serveV1(ctx context.Context, p *pool) {
	addr := p.model.Container.Addr
	wait := retry.Backoff{First: 100 * time.Millisecond, Most: 5 * time.Second}
	if s.cfg.OwnsV1 {
		wait.Most = time.Second // it is near, and will be there
	}
	for known := false; ctx.Err() == nil; {
		runner, err := dialV1(ctx, p)
		if err != nil {
			if ctx.Err() == nil && !known {
				s.log.Info("the version 1 container does not listen yet", "addr", addr, "err", err)
			}
			known = true
			wait.Sleep(ctx)
			continue
		}
		known = false
		started := time.Now()
		s.log.Info("connected to a version 1 container", "addr", addr)
		err = s.runV1(ctx, p, runner)
		if ctx.Err() != nil {
			return
		}
		s.log.Warn("lost the version 1 container", "addr", addr, "err", err)
		if s.cfg.OwnsV1 && errors.Is(err, container.ErrStalled) {
			s.replaceV1(ctx, addr)
		}
		if time.Since(started) > wait.Most {
			wait.Reset()
		}
		wait.Sleep(ctx)
	}
}

func dialV1(ctx context.Context, p *pool) (*container.V1, error) {
	ctx, cancel := context.WithTimeout(ctx, dialV1Within)
	defer cancel()
	return container.DialV1(ctx, p.model)
}

// runV1 serves batches on a connection until it is lost or ctx ends, and closes it. An end of
// ctx is the end of the container, too, if it is ours.
func (s *Sidecar) runV1(ctx context.Context, p *pool, runner *container.V1) error {
	defer runner.Close()
	var ending sync.WaitGroup
	ending.Add(1)
	notYet := context.AfterFunc(ctx, func() {
		defer ending.Done()
		s.endV1(runner)
	})
	defer func() {
		if !notYet() {
			ending.Wait()
		}
	}()
	whole, err := p.stageOf("", "")
	if err != nil {
		return err
	}
	watching, lose := context.WithCancelCause(ctx)
	defer lose(nil)
	go func() { lose(runner.Watch(watching)) }()
	if err := p.serve(watching, whole, worker{Runner: runner, stall: s.cfg.Stall}); !errors.Is(err, context.Canceled) {
		return err
	}
	return context.Cause(watching)
}

// endV1 disconnects a container, and asks it to end if Topsail started it. A batch that still runs
// was given up.
func (s *Sidecar) endV1(runner *container.V1) {
	if !s.cfg.OwnsV1 {
		runner.Close()
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), shutdownV1Within)
	defer cancel()
	if err := runner.Shutdown(ctx); err != nil { // another connection may have ended it before
		s.log.Debug("the version 1 container did not answer the shutdown", "err", err)
	}
}

// replaceV1 has a container that hangs started anew, and waits until it has ended: its port
// may well accept connections that it never serves.
func (s *Sidecar) replaceV1(ctx context.Context, addr string) {
	if s.cfg.Stalled != nil {
		s.cfg.Stalled()
	}
	ctx, cancel := context.WithTimeout(ctx, endV1Within)
	defer cancel()
	container.AwaitEndV1(ctx, addr)
}
