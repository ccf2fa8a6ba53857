//go:build servers

package influxdb

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/topsail-serving/topsail/test/require"
	"github.com/topsail-serving/topsail/test/servers"
	"github.com/topsail-serving/topsail/test/wait"
)

// TestServerGoesAndComesBack stops, freezes and kills a real InfluxDB while a
// gateway reports. Nothing is held up, and what is kept is there afterwards.
func TestServerGoesAndComesBack(t *testing.T) {
	t.Parallel()
	server, err := start(t.TempDir())
	require.NoError(t, err)
	t.Cleanup(server.Stop)
	base := time.Now().UTC().Truncate(time.Second).Add(-time.Hour)
	r := &outage{T: t, Server: server, base: base, Store: open(t, Config{URL: "http://" + server.Addr, Bucket: database(t, server.Addr), Log: testLog(t)})}
	r.demand.ring.limit = 60 * 51 // less than maxDemand, to be quick
	r.writes(10, 5)
	r.wantRead(0)

	server.Stop()
	r.writes(60, 50)
	r.start()
	r.wantRead(0)

	server.Freeze()
	r.writes(60, 50)
	r.wantUnread() // in bounded time
	server.Thaw()
	r.wantRead(0)

	server.Kill()
	const over = 40 // seconds for which there is no room
	r.writes(60+over, 50)
	r.start()
	r.wantRead(over)
	if n := r.Dropped(); n != over {
		t.Errorf("%d reports dropped, want %d", n, over)
	}
}

// outage is a store whose server comes and goes.
type outage struct {
	*testing.T
	*servers.Server
	*Store
	base time.Time
	read int // seconds from base on that were read already
	last int // seconds from base on that were written
}

// writes reports seconds on end, of so many versions each.
func (r *outage) writes(seconds, versions int) {
	r.Helper()
	var slowest time.Duration
	for range seconds {
		of := report("gateway-1", r.base.Add(time.Duration(r.last)*time.Second), versions)
		before := time.Now()
		r.WriteDemand(of)
		slowest = max(slowest, time.Since(before))
		r.last++
	}
	if slowest > 2*time.Second { // the machine's hiccup, not the five seconds of a request
		r.Errorf("a report took %v to hand over", slowest)
	}
}

func (r *outage) start() {
	r.Helper()
	require.NoError(r, r.Start(r.Context()))
}

// wantRead waits until everything written since the last time is there, but for the
// oldest, which are lost.
func (r *outage) wantRead(lost int) {
	r.Helper()
	var want, got []string
	for second := r.read + lost; second < r.last; second++ {
		want = append(want, fmt.Sprint(second))
	}
	deadline := time.Now().Add(20 * time.Second)
	for !slices.Equal(got, want) {
		if time.Now().After(deadline) {
			r.Fatalf("read seconds %v, want %v", got, want)
		}
		reports, err := r.ReadDemand(r.Context(), r.base.Add(time.Duration(r.read)*time.Second), r.base.Add(time.Duration(r.last)*time.Second))
		if err != nil {
			r.Log(err)
		}
		got = nil
		for _, of := range reports {
			got = append(got, fmt.Sprint(int(of.Second.Sub(r.base)/time.Second)))
		}
		time.Sleep(10 * time.Millisecond)
	}
	r.read = r.last
}

// wantUnread reads in vain, and for no longer than it may.
func (r *outage) wantUnread() {
	r.Helper()
	ctx, cancel := context.WithTimeout(r.Context(), time.Second)
	defer cancel()
	if list, err := r.ReadDemand(ctx, r.base, r.base.Add(time.Second)); !errors.Is(err, context.DeadlineExceeded) {
		r.Errorf("a frozen server says %v, %v", list, err)
	}
}

// BenchmarkReadDemand reads three seconds of ten gateways with 200 versions each
// from a real InfluxDB.
func BenchmarkReadDemand(b *testing.B) {
	for _, size := range []struct{ sources, versions int }{{2, 2}, {10, 20}, {10, 200}} {
		b.Run(fmt.Sprintf("%d sources, %d versions each", size.sources, size.versions), func(b *testing.B) {
			s := open(b, Config{URL: "http://" + server(b), Bucket: database(b, server(b))})
			base := time.Now().UTC().Truncate(time.Second).Add(-time.Minute)
			for second := range 60 {
				for source := range size.sources {
					s.WriteDemand(report(fmt.Sprintf("gateway-%d", source), base.Add(time.Duration(second)*time.Second), size.versions))
				}
				wait.Until(b, "it is written", func() bool { return s.Waiting() == 0 })
			}
			from := base.Add(50 * time.Second)
			want := 3 * size.sources
			wait.Until(b, "it is there", func() bool {
				list, err := s.ReadDemand(b.Context(), base.Add(57*time.Second), base.Add(time.Minute))
				return err == nil && len(list) == want
			})
			b.ReportAllocs()
			for b.Loop() {
				if list, err := s.ReadDemand(b.Context(), from, from.Add(3*time.Second)); err != nil || len(list) != want {
					b.Fatal(len(list), err)
				}
			}
		})
	}
}
