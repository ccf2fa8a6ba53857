package leader

import (
	"context"
	"errors"
	"log/slog"
	"time"
)

// runTerm runs lead, and keeps the lease until lead has returned.
func (e *Elector) runTerm(ctx context.Context, term *Term, lead func(context.Context, *Term) error) {
	log := e.Log.With("holder", e.Holder, "fence", term.Fence())
	log.Info("leading")
	leading, done := term.context(ctx), make(chan error, 1)
	go func() { done <- lead(leading, term) }()

	// The lease outlives ctx, for as long as lead needs to return.
	err := e.keep(context.WithoutCancel(ctx), term, done, log)
	term.end(context.Canceled)
	if errors.Is(context.Cause(leading), ErrLost) {
		log.Warn("lost leadership", "error", err)
	} else {
		log.Info("giving up leadership", "error", err)
	}
	if err := e.release(ctx); err != nil {
		log.Warn("the next leader has to wait until the lease expires", "error", err)
	}
}

// keep renews the lease until lead is done, and returns what lead did. When the
// lease is lost, or may be, it ends the term and renews no more.
func (e *Elector) keep(ctx context.Context, term *Term, done <-chan error, log *slog.Logger) error {
	tick := time.NewTicker(e.TTL / 5)
	defer tick.Stop()
	for {
		select {
		case err := <-done:
			return err
		case <-tick.C:
		}
		trying, cancel := context.WithTimeout(ctx, min(term.left(), e.TTL/4))
		held, err := e.renew(trying, term)
		cancel()
		if !held && err == nil || !term.Valid() {
			term.end(ErrLost)
			return <-done
		}
		if err != nil {
			log.Warn("cannot renew the lease; retrying", "error", err, "left", term.left())
		}
	}
}
