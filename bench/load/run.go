package load

import (
	"context"
	"fmt"
	"sync"
	"time"
)

// Run sends the requests of one run and waits for their answers. When ctx ends it
// returns at once what it has, and the cause. It fails before sending anything
// when the config is wrong or the server cannot be connected to.
func Run(ctx context.Context, cfg Config) (Report, error) {
	cfg, err := cfg.complete()
	if err != nil {
		return Report{}, err
	}
	alarm, err := newAlarm()
	if err != nil {
		return Report{}, err
	}
	defer alarm.close()
	defer context.AfterFunc(ctx, alarm.interrupt)()

	tally := newTally()
	senders, err := connect(ctx, cfg, tally)
	if err != nil {
		return Report{}, err
	}
	start := time.Now()
	turn := make(chan *schedule, 1)
	turn <- &schedule{arrivals: newArrivals(cfg), alarm: alarm, start: start, duration: cfg.Duration}
	var running sync.WaitGroup
	for _, s := range senders {
		running.Go(func() { s.run(ctx, turn) })
	}
	running.Wait()
	if ctx.Err() != nil {
		return tally.finish(time.Since(start)), context.Cause(ctx)
	}
	return tally.finish(max(time.Since(start), cfg.Duration)), nil
}

// connect makes the senders with all their connections, so that no request pays
// for one unless a connection fails.
func connect(ctx context.Context, cfg Config, tally *tally) ([]*sender, error) {
	target, err := parseTarget(cfg.URL)
	if err != nil {
		return nil, err
	}
	senders := make([]*sender, cfg.Connections)
	for i := range senders {
		c := newConn(target)
		senders[i] = &sender{conn: c, body: cfg.Body, seen: cfg.Seen, timeout: cfg.Timeout, tally: tally}
		if err := c.dial(ctx, time.Now().Add(cfg.Timeout)); err != nil {
			for _, s := range senders[:i] {
				s.conn.close()
			}
			return nil, fmt.Errorf("load: connect to the server: %w", err)
		}
	}
	return senders, nil
}
