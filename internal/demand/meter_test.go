package demand

import (
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/topsail-serving/topsail/serving"
)

var a1, a2, b1 = serving.ModelID{Model: "a", Version: "1"}, serving.ModelID{Model: "a", Version: "2"}, serving.ModelID{Model: "b", Version: "1"}

func TestMeterCounts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := NewMeter()
		gateway, idle := m.Open(a2, nil), m.Open(a1, nil)
		sidecar := m.Open(b1, func() serving.LatencyLine { return serving.LatencyLine{Base: 2, PerInput: 3} })
		deadline := time.Now().Add(100 * time.Millisecond)
		for range 2 {
			q := gateway.Began(time.Now(), deadline)
			defer q.Ended(time.Now(), true) // when it is no longer looked at
		}
		failed, inTime, late := gateway.Began(time.Now(), deadline), gateway.Began(time.Now(), deadline), gateway.Began(time.Now(), deadline)
		failed.Unserved()
		failed.Ended(time.Now(), false)
		time.Sleep(100 * time.Millisecond)
		inTime.Ended(time.Now(), true)
		time.Sleep(time.Microsecond)
		late.Ended(time.Now(), true)
		for range 5 {
			sidecar.Admitted()
			sidecar.Waited(time.Millisecond)
		}
		sidecar.Refused()
		sidecar.Batch(2, 10*time.Millisecond)
		sidecar.Batch(3, 12*time.Millisecond)
		want := []serving.Demand{
			{ModelID: a2, Arrivals: 5, Unserved: 1, Defaults: 2, Concurrency: 4*100*time.Millisecond + 3*time.Microsecond},
			{ModelID: b1, Admitted: 5, Refused: 1, Batches: 2, Inputs: 5, Waited: 5 * time.Millisecond, Service: 22 * time.Millisecond, Profile: serving.LatencyLine{Base: 2, PerInput: 3}},
		}
		if got := m.take(); !slices.Equal(got, want) {
			t.Errorf("took %+v, want %+v", got, want)
		}
		want = want[1:]
		want[0] = serving.Demand{ModelID: b1, Profile: want[0].Profile}
		if got := m.take(); !slices.Equal(got, want) {
			t.Errorf("took %+v, want %+v: what was taken is gone, and profiles are not", got, want)
		}
		idle.Close()
	})
}

func TestTalliesOfAVersionAddUp(t *testing.T) {
	m := NewMeter()
	line := func(base time.Duration) func() serving.LatencyLine {
		return func() serving.LatencyLine { return serving.LatencyLine{Base: base, PerInput: base / 10} }
	}
	for i, profile := range []func() serving.LatencyLine{line(100), line(0), line(300), nil} {
		tally := m.Open(a1, profile)
		tally.Batch(i, 0)
		tally.Admitted()
	}
	want := []serving.Demand{{ModelID: a1, Admitted: 4, Batches: 4, Inputs: 6, Profile: serving.LatencyLine{Base: 200, PerInput: 20}}}
	if got := m.take(); !slices.Equal(got, want) {
		t.Errorf("took %+v, want %+v", got, want)
	}
}

// TestClosedTallies are kept for what still ends, and then forgotten.
func TestClosedTallies(t *testing.T) {
	m := NewMeter()
	tally := m.Open(a1, nil)
	q := tally.Began(time.Now(), time.Now())
	tally.Close()
	if d := m.take(); len(d) != 1 || d[0].Arrivals != 1 {
		t.Errorf("took %+v after the end, want what was counted before it", d)
	}
	q.Ended(time.Now(), false)
	if d := m.take(); len(d) != 1 || d[0].Defaults != 1 {
		t.Errorf("took %+v, want the question that ended late", d)
	}
	for range forgetAfter {
		m.take()
	}
	if n := len(m.tallies); n != 0 {
		t.Errorf("%d tallies of versions that are gone", n)
	}
	for range 10_000 { // a meter is as large as what is open
		m.Open(a1, nil).Close()
		m.take()
	}
	if n := len(m.tallies); n > forgetAfter {
		t.Errorf("%d tallies of versions that are gone", n)
	}
}

func TestNilMeterCountsNothing(t *testing.T) {
	var m *Meter
	tally := m.Open(a1, nil)
	q := tally.Began(time.Now(), time.Now())
	q.Unserved()
	q.Ended(time.Now(), true)
	tally.Admitted()
	tally.Refused()
	tally.Waited(1)
	tally.Batch(1, 1)
	tally.Close()
	if tally != nil {
		t.Error("a tally of no meter")
	}
}

// TestMeterAtOnce counts from many sides while it takes, opens and closes: nothing
// is lost and nothing is counted twice.
func TestMeterAtOnce(t *testing.T) {
	const workers, each = 4, 5_000
	m := NewMeter()
	tally := m.Open(a1, nil)
	var working sync.WaitGroup
	for range workers {
		working.Go(func() {
			for range each {
				q := tally.Began(time.Now(), time.Time{})
				tally.Batch(3, 2)
				q.Ended(time.Now(), true) // late
			}
		})
	}
	working.Go(func() {
		for range 100 {
			m.Open(b1, nil).Close()
		}
	})
	done := make(chan struct{})
	go func() { working.Wait(); close(done) }()
	var sum serving.Demand
	for running := true; running; {
		select {
		case <-done:
			running = false
		default:
		}
		for _, d := range m.take() {
			sum.Arrivals += d.Arrivals
			sum.Defaults += d.Defaults
			sum.Batches += d.Batches
			sum.Inputs += d.Inputs
			sum.Service += d.Service
		}
	}
	const n = workers * each
	if want := (serving.Demand{Arrivals: n, Defaults: n, Batches: n, Inputs: 3 * n, Service: 2 * n}); sum != want {
		t.Errorf("in all %+v, want %+v", sum, want)
	}
}

// BenchmarkQuestion is what a gateway counts of one question.
func BenchmarkQuestion(b *testing.B) {
	tally, now := NewMeter().Open(a1, nil), time.Now()
	deadline := now.Add(time.Hour)
	b.Run("one at a time", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			tally.Began(now, deadline).Ended(time.Now(), true)
		}
	})
	b.Run("all cores", func(b *testing.B) {
		b.ReportAllocs()
		b.RunParallel(func(pb *testing.PB) {
			for pb.Next() {
				tally.Began(now, deadline).Ended(time.Now(), true)
			}
		})
	})
}

// BenchmarkTake is one report of 200 versions.
func BenchmarkTake(b *testing.B) {
	m := NewMeter()
	var tallies []*Tally
	for i := range 200 {
		tallies = append(tallies, m.Open(serving.ModelID{Model: "m", Version: string(rune('a' + i))}, nil))
	}
	b.ReportAllocs()
	for b.Loop() {
		for _, t := range tallies {
			t.Admitted()
		}
		if n := len(m.take()); n != 200 {
			b.Fatal(n)
		}
	}
}

// TestMeterBacklogs says what waits with every take, and what was answered once.
func TestMeterBacklogs(t *testing.T) {
	m := NewMeter()
	wine := func(records, answered uint64) serving.Backlog {
		return serving.Backlog{ModelID: a1, Stream: "wine", Records: records, Answered: answered, CatchUp: time.Minute}
	}
	beer := serving.Backlog{ModelID: a1, Stream: "beer", Records: 1}
	want := func(when string, want ...serving.Backlog) {
		t.Helper()
		if got := m.takeBacklogs(); !slices.Equal(got, want) {
			t.Errorf("%s: took %+v, want %+v", when, got, want)
		}
	}
	want("at first")
	m.Backlog("wine", []serving.Backlog{wine(100, 7)})
	m.Backlog("beer", []serving.Backlog{beer})
	want("two streams", beer, wine(100, 7))
	want("again", beer, wine(100, 0))
	m.Backlog("wine", []serving.Backlog{wine(90, 5)})
	m.Backlog("wine", []serving.Backlog{wine(80, 6)})
	m.Backlog("beer", nil)
	want("said twice", wine(80, 11))
	m.Backlog("wine", nil)
	want("gone")
	var none *Meter
	none.Backlog("wine", []serving.Backlog{wine(1, 1)})
}
