package sidecar

import (
	"context"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/topsail-serving/topsail/internal/demand"
	"github.com/topsail-serving/topsail/rpc"
	"github.com/topsail-serving/topsail/serving"
	"github.com/topsail-serving/topsail/sidecar/batch"
	"github.com/topsail-serving/topsail/sidecar/queue"
)

// reports keeps what a reporter says.
type reports []serving.DemandReport

func (r *reports) WriteDemand(one serving.DemandReport) { *r = append(*r, one) }

// TestDemand counts a container's batches, what waits for them, and what is refused.
func TestDemand(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		meter, got := demand.NewMeter(), &reports{}
		ctx, stop := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() {
			defer close(done)
			(&demand.Reporter{Source: serving.DemandSource{Role: "sidecar", Name: "m/0"}, Meter: meter, Sink: got}).Run(ctx)
		}()
		l := newLoad(t, serving.BatchSpec{Strategy: "fixed", MaxSize: 2}, linear(8*ms, ms))
		tally := meter.Open(l.pool.model.ModelID, l.pool.profile)
		l.pool.metrics.demand = tally
		for range 3 { // at 0 s, 0.1 s and 0.2 s: one alone takes 9 ms
			l.submit(time.Second)
			time.Sleep(100 * ms)
		}
		for range 4 { // at 0.3 s: one alone, two for 10 ms, and one alone again
			l.submit(time.Second)
			synctest.Wait()
		}
		time.Sleep(100 * ms)
		l.submit(ms) // would be late: its container is idle, and tried in vain
		l.pool.refuse(l.item(ms), rpc.StatusFull, queue.ErrFull)
		l.pool.refuse(l.item(ms), rpc.StatusCancelled, batch.ErrCancelled)
		time.Sleep(2 * time.Second)
		l.stop()
		tally.Close()
		stop()
		<-done
		id := l.pool.model.ModelID
		profile := l.pool.lastKnown(t, *got)
		want := []serving.Demand{{
			ModelID: id, Admitted: 8, Refused: 2, Batches: 6, Inputs: 7, Service: 5*9*ms + 10*ms,
			Waited: 2*9*ms + 9*ms + 10*ms, Profile: profile,
		}}
		if r := (*got)[0]; !slices.Equal(r.Demands, want) {
			t.Errorf("the first second: %+v, want %+v", r.Demands, want)
		}
		if took := profile.Took(1); took < 8*ms || took > 10*ms {
			t.Errorf("the profile is %+v", profile)
		}
		want = []serving.Demand{{ModelID: id, Profile: profile}}
		if r := (*got)[1]; !slices.Equal(r.Demands, want) {
			t.Errorf("an idle second: %+v, want %+v", r.Demands, want)
		}
		if r := (*got)[len(*got)-1]; !r.Last || len(r.Demands) != 0 {
			t.Errorf("without a container: %+v", r)
		}
	})
}

// item is a query that has so long.
func (l *load) item(budget time.Duration) *queue.Item {
	now := time.Now()
	return &queue.Item{Arrived: now, Deadline: now.Add(budget), From: l}
}

func (l *load) submit(budget time.Duration) {
	l.pool.submit(l.item(budget))
	go l.pool.wake() // once what comes with it is there, too
}

// lastKnown is the profile as it was reported for the second second.
func (p *pool) lastKnown(t *testing.T, got reports) serving.LatencyLine {
	if len(got) < 2 || len(got[1].Demands) != 1 {
		t.Fatalf("reports %+v", got)
	}
	return got[1].Demands[0].Profile
}

// TestDemandOfASidecar is counted while it runs.
func TestDemandOfASidecar(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		meter, got := demand.NewMeter(), &reports{}
		r := newRig(t, Config{Demand: meter})
		r.model(nil)
		g := r.gateway()
		ctx, stop := context.WithTimeout(t.Context(), 3*time.Second)
		defer stop()
		done := make(chan struct{})
		go func() {
			defer close(done)
			(&demand.Reporter{Source: serving.DemandSource{Role: "sidecar", Name: "m/0"}, Meter: meter, Sink: got}).Run(ctx)
		}()
		pass(0)
		g.ask(0, time.Second, tagged(1), tagged(2), tagged(3))
		pass(2500 * ms)
		r.end()
		<-done
		var sum serving.Demand
		for _, report := range *got {
			for _, d := range report.Demands {
				sum.Admitted += d.Admitted
				sum.Inputs += d.Inputs
			}
		}
		if sum.Admitted != 3 || sum.Inputs != 3 {
			t.Errorf("counted %+v, want 3 inputs", sum)
		}
	})
}
