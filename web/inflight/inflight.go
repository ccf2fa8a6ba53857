// Package inflight has the requests and answers of management take of the process's budget
// what they hold in memory.
package inflight

import (
	"io"
	"net/http"
	"sync/atomic"

	"github.com/topsail-serving/topsail/internal/budget"
	"github.com/topsail-serving/topsail/internal/obs"
	"github.com/topsail-serving/topsail/web/problem"
)

// small is up to which size a body or an answer needs nothing of the budget, as connections
// are bounded: there is always room for them.
const small = 8 << 10

// Memory is what management has of a budget.
type Memory struct {
	budget  *budget.Budget
	held    atomic.Int64
	refused obs.Counter
}

// New shares a budget with the rest of the process.
func New(b *budget.Budget, metrics *obs.Registry) *Memory {
	m := &Memory{budget: b}
	m.refused = metrics.Counters("topsail_management_refused_total", "Requests that management refused because max_inflight_bytes is used up.").WithLabelValues()
	metrics.GaugeFunc("topsail_management_inflight_bytes", "Memory of requests to management and their answers above 8 KiB in progress.", func() float64 { return float64(m.held.Load()) })
	return m
}

// Handler counts the memory of requests to next until they are answered.
func (m *Memory) Handler(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		reads := r.Method == http.MethodGet || r.Method == http.MethodHead
		held := &request{ResponseWriter: w, of: m, lease: m.budget.Lease(), reads: reads}
		defer held.release()
		next.ServeHTTP(held, r)
	})
}

// request is one that is under way, with what it holds.
type request struct {
	http.ResponseWriter
	of    *Memory
	lease budget.Lease
	reads bool // it changes nothing, and may be sent again
}

// Unwrap lets http.ResponseController find what can flush.
func (r *request) Unwrap() http.ResponseWriter { return r.ResponseWriter }

func (r *request) take(n int) bool {
	before := r.lease.Held()
	taken := r.lease.Take(n)
	r.of.held.Add(r.lease.Held() - before)
	return taken
}

func (r *request) release() {
	r.of.held.Add(-r.lease.Held())
	r.lease.Release()
}

// requestOf finds the request that w answers; nil where no Handler is around it.
func requestOf(w http.ResponseWriter) *request {
	for {
		switch inner := w.(type) {
		case *request:
			return inner
		case interface{ Unwrap() http.ResponseWriter }:
			w = inner.Unwrap()
		default:
			return nil
		}
	}
}

// Take takes memory for what w answers, or says in a problem that there is none. It is given
// back after the answer.
func Take(w http.ResponseWriter, n int) error {
	r := requestOf(w)
	if r == nil || n <= small || r.take(n) {
		return nil
	}
	r.of.refused.Inc()
	p := problem.New(http.StatusServiceUnavailable, "no_memory", "requests and answers in progress use all of their memory; send the request again in a second, or raise gateway.max_inflight_bytes")
	p.Header = http.Header{"Retry-After": {"1"}}
	return p
}

// Answer takes memory for an answer that has been made. That to a change is never refused,
// as the change is done.
func Answer(w http.ResponseWriter, n int) error {
	if r := requestOf(w); r != nil && !r.reads {
		_ = n <= small || r.take(n)
		return nil
	}
	return Take(w, n)
}

// ReadAll reads a body that w answers into memory that grows with what comes, whatever length
// is announced.
func ReadAll(w http.ResponseWriter, body io.Reader) ([]byte, error) {
	b := make([]byte, 0, 512)
	for {
		n, err := body.Read(b[len(b):cap(b)])
		b = b[:len(b)+n]
		switch {
		case err == io.EOF:
			return b, nil
		case err != nil:
			return nil, err
		}
		if len(b) < cap(b) {
			continue
		}
		size := 2 * cap(b)
		if err := Take(w, size-taken(cap(b))); err != nil {
			return nil, err
		}
		b = append(make([]byte, 0, size), b...)
	}
}

// taken is how much of a buffer's size has been taken.
func taken(size int) int {
	if size <= small {
		return 0
	}
	return size
}
