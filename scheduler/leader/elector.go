package leader

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"time"

	"github.com/topsail-serving/topsail/internal/condition"
	"github.com/topsail-serving/topsail/internal/retry"
)

// Config says what an Elector stands for.
type Config struct {
	Lock   Lock
	Holder string        // names this process to people
	TTL    time.Duration // of the lease; 0: 10 s
	Margin time.Duration // by which a term ends before its lease; 0: a fifth of TTL

	// Floor is the highest fence that the guarded state has seen; nil: none. The
	// lock's tokens are beyond it, unless the lock's server has lost its data: then
	// fences go on from the floor. No term begins when it fails.
	Floor func(context.Context) (uint64, error)
	Log   *slog.Logger
}

// Elector leads whenever it can.
type Elector struct {
	Config
	standing *condition.Condition
}

// New prepares an Elector; Run starts it.
func New(cfg Config) *Elector {
	cfg.TTL = cmp.Or(cfg.TTL, 10*time.Second)
	cfg.Margin = cmp.Or(cfg.Margin, cfg.TTL/5)
	cfg.Log = cmp.Or(cfg.Log, slog.New(slog.DiscardHandler))
	standing := &condition.Condition{Log: cfg.Log.With("holder", cfg.Holder), Begins: "cannot acquire leadership; retrying"}
	return &Elector{Config: cfg, standing: standing}
}

// Run calls lead in every term, until ctx ends; then it gives the lock back and returns why ctx
// ended. The context of lead ends with the term, and before that only with ctx. lead must return
// then, because no other term begins before; until it has, a lease that is not lost is kept. When
// lead returns by itself, the lock is given back and any process may lead next.
func (e *Elector) Run(ctx context.Context, lead func(ctx context.Context, term *Term) error) error {
	for ctx.Err() == nil {
		term, err := e.campaign(ctx)
		if ctx.Err() == nil {
			e.standing.Note(err)
		}
		wait := e.TTL / 20
		if term != nil {
			e.runTerm(ctx, term, lead)
			wait = e.TTL / 5 // another one may do better
		}
		retry.Sleep(ctx, time.Duration(float64(wait)*(0.8+0.4*rand.Float64()))) // so that no two processes keep step
	}
	return context.Cause(ctx)
}

// campaign is nil when another scheduler leads.
func (e *Elector) campaign(ctx context.Context) (*Term, error) {
	ctx, cancel := context.WithTimeout(ctx, e.TTL)
	defer cancel()
	token, err := e.Lock.Acquire(ctx, e.Holder, e.TTL)
	if err != nil {
		return nil, fmt.Errorf("acquire leadership: %w", err)
	}
	if token == 0 {
		return nil, nil
	}
	term, err := e.begin(ctx, token)
	if err != nil {
		err = errors.Join(err, e.release(ctx))
	}
	return term, err
}

// begin makes a term of a lock that was just taken. Acquire may have waited long,
// so the term's time counts from a renewal.
func (e *Elector) begin(ctx context.Context, token uint64) (*Term, error) {
	var floor uint64
	if e.Floor != nil {
		var err error
		if floor, err = e.Floor(ctx); err != nil {
			return nil, fmt.Errorf("acquire leadership: last fence: %w", err)
		}
	}
	term := &Term{fence: max(token, floor+1), life: e.TTL - e.Margin}
	if held, err := e.renew(ctx, term); err != nil || !held {
		return nil, cmp.Or(err, ErrLost)
	}
	return term, nil
}

func (e *Elector) renew(ctx context.Context, term *Term) (held bool, err error) {
	begun := time.Now()
	if held, err = e.Lock.Renew(ctx); err == nil && held {
		term.renew(begun)
	}
	return held && err == nil, err
}

// release also works after the end of ctx.
func (e *Elector) release(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), e.TTL/5)
	defer cancel()
	if err := e.Lock.Release(ctx); err != nil {
		return fmt.Errorf("give up leadership: %w", err)
	}
	return nil
}
