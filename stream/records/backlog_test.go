package records

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/topsail-serving/topsail/serving"
)

func TestMix(t *testing.T) {
	m := newMix()
	want := func(when string, got []serving.AppBacklog, want ...serving.AppBacklog) {
		t.Helper()
		if !slices.Equal(got, want) {
			t.Errorf("%s: %+v, want %+v", when, got, want)
		}
	}
	want("nothing waits", m.take(0, []string{"own"}))
	want("no app is known", m.take(100, nil))
	want("before any answer", m.take(100, []string{"own"}), serving.AppBacklog{App: "own", Records: 100})
	for i := range 40 {
		m.add([]string{"red", "white", "white", "white"}[i%4])
	}
	want("as they were answered", m.take(100, []string{"own"}), serving.AppBacklog{App: "red", Records: 25, Answered: 10}, serving.AppBacklog{App: "white", Records: 75, Answered: 30})
	for range 1000 {
		m.take(100, []string{"own"})
	}
	want("long after", m.take(100, []string{"own"}), serving.AppBacklog{App: "red", Records: 25}, serving.AppBacklog{App: "white", Records: 75})
	for range 100 {
		m.add("red")
		m.take(0, []string{"own"})
	}
	if got := m.take(100, []string{"own"}); len(got) == 0 || got[0].App != "red" || got[0].Records < 99 {
		t.Errorf("after many of one app: %+v", got)
	}
}

// said is the demand that a job was heard of.
type said struct{ all chan string }

func (s said) Backlog(stream string, catchUp time.Duration, waiting []serving.AppBacklog) {
	select {
	case s.all <- fmt.Sprint(stream, " ", catchUp, " ", waiting):
	default:
	}
}

// TestFollowBacklog says what waits behind the records in flight, and nothing at the end.
func TestFollowBacklog(t *testing.T) {
	bubble(t, func(t *testing.T) {
		broker := newMemory("in")
		for i := range 100 {
			broker.write(jsonRecord(fmt.Sprint(i), 1))
		}
		hold := newScorer(func(ctx context.Context, _ *serving.Query) (serving.Prediction, error) {
			<-ctx.Done()
			return serving.Prediction{}, context.Cause(ctx)
		})
		demand := said{make(chan string, 1)}
		j, _, stop := run(t, broker, hold, func(c *Config) { c.Batch, c.Demand, c.Drain = 30, demand, time.Second })
		ctx, cancel := context.WithCancel(t.Context())
		go j.FollowBacklog(ctx)
		heard := func() string {
			select {
			case <-demand.all:
			default:
			}
			settled(2 * time.Second)
			return <-demand.all
		}
		settled(10 * time.Second)
		if got, want := heard(), "job 5m0s [{double 70 0}]"; got != want {
			t.Errorf("it says %q, want %q", got, want)
		}
		select {
		case <-demand.all:
		default:
		}
		cancel()
		if got, want := <-demand.all, "job 5m0s []"; got != want {
			t.Errorf("in the end it says %q, want %q", got, want)
		}
		stop()
	})
}
