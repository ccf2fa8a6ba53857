package influxdb

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"slices"
	"time"

	apihttp "github.com/influxdata/influxdb-client-go/v2/api/http"
	"github.com/influxdata/influxdb-client-go/v2/api/write"

	"github.com/topsail-serving/topsail/internal/retry"
)

const (
	maxRequest  = 5000 // points
	firstPause  = 100 * time.Millisecond
	lastPause   = 2 * time.Second // the scheduler waits for what we write
	leaveWithin = 2 * time.Second
)

// writer writes what others put into its ring, independently of them. A point keeps its time, so
// that writing it again changes nothing.
type writer struct {
	what  string // demand or metrics, for the log
	ring  *ring
	write func(context.Context, []*write.Point) error
	log   *slog.Logger

	failing time.Time // since when; zero: it works
	pause   retry.Backoff
}

func newWriter(what string, limit int, write func(context.Context, []*write.Point) error, log *slog.Logger) *writer {
	return &writer{what: what, ring: newRing(limit), write: write, log: log, pause: retry.Backoff{First: firstPause, Most: lastPause}}
}

func (w *writer) put(e entry) { w.ring.put(e) }

func (w *writer) waiting() int { return w.ring.len() }

func (w *writer) dropped() uint64 {
	w.ring.mu.Lock()
	defer w.ring.mu.Unlock()
	return w.ring.dropped
}

func (w *writer) run(ctx context.Context) {
	for {
		select {
		case <-w.ring.came:
			w.flush(ctx)
		case <-ctx.Done():
			w.leave(ctx)
			return
		}
	}
}

// flush writes until nothing waits or ctx ends, however often it takes.
func (w *writer) flush(ctx context.Context) {
	for ctx.Err() == nil {
		done, err := w.step(ctx)
		switch {
		case err != nil:
			w.failed(ctx, err)
		case done:
			return
		default:
			w.succeeded()
		}
	}
}

// leave tries once for everything that waits.
func (w *writer) leave(ctx context.Context) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), leaveWithin)
	defer cancel()
	for {
		done, err := w.step(ctx)
		if err != nil {
			w.log.Warn("stopped with "+w.what+" unwritten", "reports", w.ring.len(), "err", err)
		}
		if done || err != nil {
			return
		}
	}
}

// step writes the oldest that wait, and says when there was nothing to do.
func (w *writer) step(ctx context.Context) (done bool, err error) {
	batch := w.ring.take(maxRequest)
	if len(batch) == 0 {
		return true, nil
	}
	ctx, cancel := context.WithTimeout(ctx, requestWithin)
	defer cancel()
	var points []*write.Point
	for _, e := range batch {
		points = e.append(points)
	}
	switch err := w.write(ctx, points); {
	case err == nil:
	case refused(err):
		w.lost(batch, err)
	default:
		w.ring.giveBack(batch)
		return false, err
	}
	return false, nil
}

// refused says that writing the same again cannot succeed: it cannot be encoded, or the server
// takes it for wrong. What is fine in such a request is written all the same.
func refused(err error) bool {
	e, answered := errors.AsType[*apihttp.Error](err)
	return !answered || slices.Contains([]int{http.StatusBadRequest, http.StatusRequestEntityTooLarge, http.StatusUnprocessableEntity}, e.StatusCode)
}

func (w *writer) lost(batch []entry, err error) {
	w.ring.mu.Lock()
	w.ring.dropped += uint64(len(batch))
	w.ring.mu.Unlock()
	w.log.Error("InfluxDB refuses "+w.what+", which is dropped; see whether another program writes fields of other types into its measurements", "reports", len(batch), "err", err)
}

// failed waits before the next try. An outage is logged once.
func (w *writer) failed(ctx context.Context, err error) {
	if ctx.Err() != nil {
		return
	}
	if w.failing.IsZero() {
		w.failing = time.Now()
		w.log.Warn("cannot write "+w.what+" to InfluxDB; keeping the newest, and retrying", "err", err)
	}
	w.pause.Sleep(ctx)
}

func (w *writer) succeeded() {
	if !w.failing.IsZero() {
		w.log.Info(w.what+" can be written to InfluxDB again", "after", time.Since(w.failing).Round(time.Millisecond), "dropped", w.dropped())
		w.failing = time.Time{}
		w.pause.Reset()
	}
}
