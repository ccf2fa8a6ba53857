package consulregistry

import (
	"cmp"
	"context"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/topsail-serving/topsail/internal/condition"
	"github.com/topsail-serving/topsail/serving"
)

// Config says what a Registry watches.
type Config struct {
	Client  *Client       // nil: a new one, by the CONSUL_* variables
	Service string        // empty: "topsail-sidecar"
	Token   func() []byte // what the service's instances want to be shown; nil: nothing
	Hold    time.Duration // how long vanished instances stay after Consul was unavailable or lost data; 0: a minute
	Log     *slog.Logger
}

// Registry knows the instances of one service. Several may share a client.
type Registry struct {
	client  *Client
	service string
	token   func() []byte
	hold    time.Duration
	log     *slog.Logger
	heard   atomic.Int64 // Unix nanoseconds of the last answer; 0: none
}

// Open prepares a Registry; it starts nothing.
func Open(cfg Config) (*Registry, error) {
	r := &Registry{
		client: cfg.Client, token: cfg.Token, hold: cmp.Or(cfg.Hold, time.Minute),
		service: cmp.Or(cfg.Service, "topsail-sidecar"),
		log:     cmp.Or(cfg.Log, slog.New(slog.DiscardHandler)),
	}
	if r.client == nil {
		var err error
		if r.client, err = Connect(Options{Log: r.log}); err != nil {
			return nil, err
		}
	}
	r.log = r.log.With("service", r.service)
	return r, nil
}

// Watch calls update with all instances by replica, whatever their checks say,
// when Consul has first answered and then whenever the list or the token has
// changed, one call at a time, until ctx ends. While Consul cannot be asked, the
// last list stays good.
func (r *Registry) Watch(ctx context.Context, update func([]serving.Endpoint)) error {
	board := &board{update: update, token: r.token}
	w := &watch{
		Registry: r, board: board, membership: membership{hold: r.hold}, backoff: newBackoff(),
		asking: condition.Condition{Log: r.log, Begins: "Consul does not answer; the last list stays in use", Ends: "consul answers again"},
	}
	var token sync.WaitGroup
	if r.token != nil {
		token.Go(func() { board.followToken(ctx) })
	}
	w.run(ctx)
	token.Wait()
	return ctx.Err()
}

// LastAnswer is when Consul last answered a watch; zero before the first answer.
// A quiet service is answered about every ten seconds.
func (r *Registry) LastAnswer() time.Time {
	if at := r.heard.Load(); at != 0 {
		return time.Unix(0, at)
	}
	return time.Time{}
}
