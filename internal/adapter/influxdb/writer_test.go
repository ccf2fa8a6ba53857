package influxdb

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	apihttp "github.com/influxdata/influxdb-client-go/v2/api/http"
	"github.com/influxdata/influxdb-client-go/v2/api/write"
)

// remote plays InfluxDB.
type remote struct {
	mu      sync.Mutex // guards the following
	err     error      // of a write
	hangs   bool       // until its context ends
	seconds []int64    // of the reports that were written
	tries   int
	largest int // request, in points
}

func (r *remote) set(err error, hangs bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.err, r.hangs = err, hangs
}

func (r *remote) write(ctx context.Context, points []*write.Point) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.tries++
	if r.hangs {
		r.mu.Unlock()
		<-ctx.Done()
		r.mu.Lock()
		return apihttp.NewError(ctx.Err())
	}
	if r.err != nil {
		return r.err
	}
	r.largest = max(r.largest, len(points))
	for _, p := range points {
		if p.Name() == measurementAlive {
			r.seconds = append(r.seconds, p.Time().Unix())
		}
	}
	return nil
}

func (r *remote) tried() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.tries
}

// rig is a writer that runs in a bubble.
type rig struct {
	*testing.T
	*writer
	remote *remote
	log    strings.Builder
	stop   func()
}

func bubble(t *testing.T, run func(t *rig)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		r := &rig{T: t, remote: &remote{}}
		r.writer = newWriter("demand", maxDemand, r.remote.write, slog.New(slog.NewTextHandler(&r.log, nil)))
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() {
			defer close(done)
			r.run(ctx)
		}()
		r.stop = sync.OnceFunc(func() {
			cancel()
			<-done
		})
		defer r.stop()
		run(r)
	})
}

// puts writes the reports from and before to, which takes no time.
func (r *rig) puts(from, to int) {
	before := time.Now()
	for i := from; i < to; i++ {
		r.put(numberedEntry(i, 10))
	}
	if d := time.Since(before); d != 0 {
		r.Errorf("the reporter was held up for %v", d)
	}
}

func (r *rig) wantWritten(want ...int64) {
	r.Helper()
	synctest.Wait()
	r.remote.mu.Lock()
	defer r.remote.mu.Unlock()
	if !slices.Equal(r.remote.seconds, want) {
		r.Errorf("wrote %v, want %v", r.remote.seconds, want)
	}
}

// wantLogged counts lines with the text.
func (r *rig) wantLogged(n int, text string) {
	r.Helper()
	if got := strings.Count(r.log.String(), text); got != n {
		r.Errorf("logged %q %d times, want %d:\n%s", text, got, n, r.log.String())
	}
}

func upTo(n int) (all []int64) {
	for i := range n {
		all = append(all, int64(i))
	}
	return all
}

var errAway = apihttp.NewError(errors.New("connection refused"))

func status(code int) error { return &apihttp.Error{StatusCode: code, Message: "so it is"} }

func TestWriterWrites(t *testing.T) {
	bubble(t, func(r *rig) {
		r.puts(0, 3)
		r.wantWritten(0, 1, 2)
		r.puts(3, 4)
		r.wantWritten(0, 1, 2, 3)
		if r.waiting() != 0 || r.dropped() != 0 {
			r.Errorf("%d wait, %d dropped", r.waiting(), r.dropped())
		}
		r.wantLogged(0, "msg")
	})
}

// TestWriterWritesInParts bounds requests.
func TestWriterWritesInParts(t *testing.T) {
	bubble(t, func(r *rig) {
		r.puts(0, 3*maxRequest/10)
		r.wantWritten(upTo(3 * maxRequest / 10)...)
		if r.remote.largest > maxRequest { // nobody writes any more
			r.Errorf("a request of %d points", r.remote.largest)
		}
	})
}

// TestWriterWaitsForItsServer writes the same again until the server takes it.
func TestWriterWaitsForItsServer(t *testing.T) {
	for name, err := range map[string]error{
		"away": errAway, "busy": status(503), "not let in": status(401), "no database": status(404), "too many": status(429),
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(r *rig) {
				r.remote.set(err, false)
				for i := range 60 {
					r.puts(i, i+1)
					time.Sleep(time.Second)
				}
				r.wantWritten()
				if tries := r.remote.tried(); tries < 20 || tries > 100 {
					r.Errorf("tried %d times in a minute", tries)
				}
				r.remote.set(nil, false)
				time.Sleep(3 * time.Second)
				r.wantWritten(upTo(60)...)
				r.wantLogged(1, "WARN")
				r.wantLogged(1, "INFO")
			})
		})
	}
}

// TestWriterOutlivesAFrozenServer gives up a request that is not answered.
func TestWriterOutlivesAFrozenServer(t *testing.T) {
	bubble(t, func(r *rig) {
		r.remote.set(nil, true)
		for i := range 30 {
			r.puts(i, i+1)
			time.Sleep(time.Second)
		}
		if tries := r.remote.tried(); tries < 3 || tries > 10 {
			r.Errorf("tried %d times in half a minute", tries)
		}
		r.remote.set(nil, false)
		time.Sleep(requestWithin + 3*time.Second)
		r.wantWritten(upTo(30)...)
	})
}

// TestWriterKeepsTheNewest through a long outage.
func TestWriterKeepsTheNewest(t *testing.T) {
	bubble(t, func(r *rig) {
		const kept, lost = testLimit / 10, 17
		r.ring.limit = testLimit
		r.remote.set(errAway, false)
		r.puts(0, 1)
		synctest.Wait()
		r.puts(1, kept+lost)
		r.remote.set(nil, false)
		time.Sleep(3 * time.Second)
		r.wantWritten(upTo(kept + lost)[lost:]...)
		if r.dropped() != lost {
			r.Errorf("%d dropped, want %d", r.dropped(), lost)
		}
		r.wantLogged(1, "dropped=17")
	})
}

// TestWriterDropsWhatIsRefused goes on with what comes after it.
func TestWriterDropsWhatIsRefused(t *testing.T) {
	for name, err := range map[string]error{
		"wrong": status(400), "too large": status(413), "too old": status(422), "cannot be encoded": errors.New("no fields"),
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(r *rig) {
				r.remote.set(err, false)
				r.puts(0, 1) // a second one may go with it, or after it
				synctest.Wait()
				r.remote.set(nil, false)
				r.puts(1, 3)
				r.wantWritten(1, 2)
				if r.dropped() != 1 {
					r.Errorf("%d dropped", r.dropped())
				}
				r.wantLogged(1, "ERROR")
			})
		})
	}
}

// TestWriterLeaves writes what still waits, also what a write in progress was about.
func TestWriterLeaves(t *testing.T) {
	bubble(t, func(r *rig) {
		r.remote.set(nil, true)
		r.puts(0, 2)
		synctest.Wait()
		r.puts(2, 4)
		r.remote.set(nil, false)
		r.stop()
		r.wantWritten(0, 1, 2, 3)
		r.wantLogged(0, "level")
	})
}

// TestWriterLeavesADeadServer soon.
func TestWriterLeavesADeadServer(t *testing.T) {
	for name, hangs := range map[string]bool{"away": false, "frozen": true} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(r *rig) {
				r.remote.set(errAway, hangs)
				r.puts(0, 2)
				time.Sleep(time.Second)
				before := time.Now()
				r.stop()
				if d := time.Since(before); d > leaveWithin {
					r.Errorf("left after %v", d)
				}
				r.wantLogged(1, "unwritten")
			})
		})
	}
}
