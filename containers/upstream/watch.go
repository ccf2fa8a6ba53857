package upstream

import (
	"context"
	"time"

	"github.com/topsail-serving/topsail/internal/retry"
)

const (
	// ProbeWithin is how long a probe may take.
	ProbeWithin = 5 * time.Second

	probeEvery  = 2 * time.Second
	firstPause  = 200 * time.Millisecond // between probes while the server is not ready; doubles up to probeEvery
	maxFailures = 3                      // in a row, of a server that was ready
)

// Watch says whether the server is ready, until ctx ends: it is once ready has answered its path, and begin,
// which asks what is to be known of it, has succeeded; and until ready has failed three times in a row.
func (s *Server) Watch(ctx context.Context, ready string, begin func(context.Context) error, set func(bool)) {
	for s.await(ctx, ready, begin) {
		s.cfg.Log.Info("the server is ready", "url", s.cfg.URL)
		s.cfg.Problem(nil)
		set(true)
		if err := s.guard(ctx, ready, begin); ctx.Err() == nil {
			s.cfg.Log.Warn("the server does not answer any more", "err", err)
			s.cfg.Problem(err)
			set(false)
		}
	}
}

// await returns when the server is ready, and says whether that came before the end of ctx.
func (s *Server) await(ctx context.Context, ready string, begin func(context.Context) error) bool {
	for pause, told := firstPause, ""; ; pause = min(2*pause, probeEvery) {
		err := s.probe(ctx, ready)
		if err == nil {
			err = begin(ctx)
		}
		if err == nil {
			return true
		}
		if ctx.Err() == nil && told != err.Error() {
			told = err.Error()
			s.cfg.Problem(err)
			s.cfg.Log.Info("waiting for the server", "url", s.cfg.URL, "err", err)
		}
		if !retry.Sleep(ctx, pause) {
			return false
		}
	}
}

// guard returns when the server has failed several probes, with the error of the last. One that answers again after fewer may
// have been started again.
func (s *Server) guard(ctx context.Context, ready string, begin func(context.Context) error) error {
	for failures := 0; retry.Sleep(ctx, probeEvery); {
		err := s.probe(ctx, ready)
		if err == nil && failures > 0 {
			err = begin(ctx)
		}
		if err == nil {
			failures = 0
			continue
		}
		if failures++; failures == maxFailures {
			return err
		}
	}
	return ctx.Err()
}

func (s *Server) probe(ctx context.Context, ready string) error {
	_, err := s.Get(ctx, ready, ProbeWithin, maxError)
	return err
}
