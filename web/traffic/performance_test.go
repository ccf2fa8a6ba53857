package traffic

import (
	"math"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/topsail-serving/topsail/internal/obs"
	"github.com/topsail-serving/topsail/serving"
	"github.com/topsail-serving/topsail/test/require"
)

// machine is a sidecar with one replica of version 1 of model m, as its metrics show it.
type machine struct {
	name, generation string
	began            time.Time
	reg              *obs.Registry
	answers          *obs.CounterVec
	sizes, run       *obs.HistogramVec
	watch            *watch
}

func newMachine(name, generation string, began time.Time) *machine {
	m := &machine{name: name, watch: &watch{Target: Target{Role: Sidecar, Name: name}}}
	m.restart(generation, began)
	return m
}

func (m *machine) restart(generation string, began time.Time) {
	m.generation, m.began, m.reg = generation, began, obs.NewRegistry()
	labels := []string{"model", "version", "replica"}
	m.answers = m.reg.Counters("topsail_sidecar_answers_total", "Answers.", append(labels, "status")...)
	m.sizes = m.reg.Histograms("topsail_sidecar_batch_size", "Sizes.", obs.Sizes(), labels...)
	m.run = m.reg.Histograms("topsail_sidecar_batch_seconds", "Times.", obs.FineSeconds(), labels...)
	m.reg.Gauges("topsail_sidecar_start_time_seconds", "Start.", append(labels, "generation")...).
		WithLabelValues("m", "1", m.name, generation).Set(float64(began.UnixMilli()) / 1000)
}

// batch runs one.
func (m *machine) batch(size int, took time.Duration, status string) {
	m.sizes.WithLabelValues("m", "1", m.name).Observe(float64(size))
	m.run.WithLabelValues("m", "1", m.name).Observe(took.Seconds())
	m.answers.WithLabelValues("m", "1", m.name, status).Add(float64(size))
}

// look has a collector read the machine.
func (m *machine) look(t rapid.TB, c *Collector, at time.Time) {
	t.Helper()
	l := m.watch.newLook(at, 0)
	m.reg.Read(l.readers(Sidecar))
	c.take(m.watch, *l, nil)
}

func definition(generation string) []serving.Definition {
	return []serving.Definition{{ModelID: serving.ModelID{Model: "m", Version: "1"}, Generation: generation}}
}

func TestPerformance(t *testing.T) {
	c := New(Config{})
	one, two := newMachine("a", "g", epoch.Add(time.Hour)), newMachine("b", "g", epoch)
	if p := c.Performance(definition("g")); p != nil {
		t.Errorf("before anything is measured it is %+v", p)
	}
	for range 98 {
		one.batch(4, 10*time.Millisecond+200*time.Microsecond, "ok")
	}
	two.batch(4, 90*time.Millisecond, "model_error")
	two.batch(4, 90*time.Millisecond, "late")
	for i := range 3 {
		one.look(t, c, epoch.Add(time.Duration(i)*time.Second))
		two.look(t, c, epoch.Add(time.Duration(i)*time.Second))
	}
	p := c.Performance(definition("g"))
	if p == nil || !p.Since.Equal(epoch) || p.Answers != 99*4 || p.Batches != 100 || *p.BatchMean != 4 || math.Abs(*p.Errors-1./99) > 1e-9 {
		t.Fatalf("got %+v", p)
	}
	if *p.P50 < 10_000 || *p.P50 > 12_500 || *p.P99 < 80_000 || *p.P99 > 100_000 || math.Abs(*p.Throughput-400/(98*0.0102+0.18)) > 0.1 {
		t.Errorf("p50 %v, p99 %v µs, %v inputs a second", *p.P50, *p.P99, *p.Throughput)
	}
	// What it becomes under its name has done nothing yet, also where the replica's name is the same.
	one.restart("h", epoch.Add(2*time.Hour))
	one.look(t, c, epoch.Add(2*time.Hour))
	if p := c.Performance(definition("h")); p != nil {
		t.Errorf("of another generation it is %+v", p)
	}
	for range 200 {
		one.batch(1, time.Millisecond, "ok")
	}
	one.look(t, c, epoch.Add(2*time.Hour))
	if p := c.Performance(definition("h")); p == nil || p.Batches != 200 || p.Since.Equal(epoch) {
		t.Errorf("of another generation it is %+v", p)
	}
	if p := c.Performance(definition("g")); p.Batches != 100 {
		t.Errorf("of the one before it is %+v", p)
	}
}

// TestPerformanceOfOlderReplicas leaves out what does not say as what it runs, and models
// with stages have answers alone.
func TestPerformanceOfOlderReplicas(t *testing.T) {
	c := New(Config{})
	m := newMachine("a", "", time.Unix(0, 0))
	m.batch(1, time.Millisecond, "ok")
	m.look(t, c, epoch)
	if p := c.Performance(definition("")); p != nil {
		t.Errorf("got %+v", p)
	}
	m = newMachine("b", "g", epoch)
	m.answers.WithLabelValues("m", "1", "b", "ok").Add(3)
	m.look(t, c, epoch)
	if p := c.Performance(definition("g")); p == nil || p.Answers != 3 || *p.Errors != 0 || p.BatchMean != nil || p.P50 != nil || p.Throughput != nil {
		t.Errorf("with stages it is %+v", p)
	}
}

// TestPerformanceCountsOnce has replicas begin anew, sidecars go from the targets and come
// back, and management start anew in any order: nothing that was read counts twice, and
// nothing that a replica still shows is lost.
func TestPerformanceCountsOnce(t *testing.T) {
	folder, runs := t.TempDir(), 0
	rapid.Check(t, func(t *rapid.T) {
		runs++
		keeper := File(filepath.Join(folder, strconv.Itoa(runs)))
		c, now := New(Config{}), epoch
		machines := []*machine{newMachine("a", "g", epoch), newMachine("b", "g", epoch), newMachine("c", "g", epoch)}
		want := uint64(0)
		for range rapid.IntRange(1, 40).Draw(t, "steps") {
			now = now.Add(time.Duration(rapid.IntRange(1, 1000).Draw(t, "ms")) * time.Millisecond)
			m := rapid.SampledFrom(machines).Draw(t, "machine")
			switch rapid.IntRange(0, 6).Draw(t, "step") {
			case 0, 1:
				for range rapid.IntRange(1, 5).Draw(t, "batches") {
					m.batch(1, time.Millisecond, "ok")
					want++
				}
			case 2, 3:
				m.look(t, c, now)
			case 4: // what it did is read before it ends
				m.look(t, c, now)
				m.restart("g", now)
			case 5:
				c.mu.Lock()
				c.dropMeasures(m.watch)
				c.mu.Unlock()
			case 6:
				save(t, c, keeper)
				if rapid.Bool().Draw(t, "restart") {
					c = New(Config{})
					for _, m := range machines {
						m.watch = &watch{Target: m.watch.Target}
					}
					if _, err := c.load(t.Context(), keeper); err != nil {
						t.Fatal(err)
					}
				}
			}
		}
		for _, m := range machines {
			m.look(t, c, now)
		}
		got := uint64(0)
		if p := c.Performance(definition("g")); p != nil {
			got = p.Batches
		}
		if got != want {
			t.Fatalf("%d batches, want %d", got, want)
		}
	})
}

func save(t *rapid.T, c *Collector, keeper Keeper) {
	t.Helper()
	require.NoError(t, c.save(t.Context(), keeper))
}

// TestTheOldestPerformanceMakesWay keeps those that were measured last.
func TestTheOldestPerformanceMakesWay(t *testing.T) {
	c := New(Config{})
	for i := range maxPerformances + 2 {
		id := definition("g" + time.Duration(i).String())[0]
		c.performance(id, epoch).seen = epoch.Add(time.Duration(i))
	}
	if len(c.performances) != maxPerformances || c.performances[definition("g1ns")[0]] != nil || c.performances[definition("g2ns")[0]] == nil {
		t.Errorf("there are %d", len(c.performances))
	}
}
