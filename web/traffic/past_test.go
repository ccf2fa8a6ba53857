package traffic

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"github.com/topsail-serving/topsail/serving"
	"github.com/topsail-serving/topsail/test/require"
)

// counted is a Collector that has counted an answer a second for so many seconds up to now.
func counted(now time.Time, seconds int64) *Collector {
	c := New(Config{Targets: func() []Target { return nil }})
	a, v := c.app("wine"), c.version(serving.ModelID{Model: "m", Version: "1"})
	a.seen, v.seen, c.heard, c.told = now, now, now, now
	to := now.Unix()
	for second := to - seconds; second < to; second++ {
		d := &tally{asked: 1}
		d.answers[serving.OK] = 1
		a.take(d, second, second+1)
		four := 4.0
		p := &pool{demand: &four}
		p.Desired = 2
		v.take(p, second, second+1)
	}
	c.perform(replicaKey{"m", "1", "a"}, &reading{at: now, began: now, generation: "g", sums: &sums{
		ended: map[string]float64{"ok": 2}, batches: 1, inputs: 2, run: timing{histogram{{0, .01, 1}}, .005},
	}})
	return c
}

// sums adds up what is known of the app in a window.
func answersIn(c *Collector, window time.Duration, now time.Time) (answers float64, known int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	a := c.apps["wine"]
	if a == nil {
		return 0, 0
	}
	v := a.series.view(window, now.Unix())
	for i := range v.n {
		if n := v.point(answered+int(serving.OK), i, sum); !math.IsNaN(n) {
			answers += n
			known++
		}
	}
	return answers, known
}

// What a process knew is there for the one that starts after it.
func TestThePastSurvivesARestart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		time.Sleep(8 * time.Hour)
		keeper := File(filepath.Join(t.TempDir(), "traffic"))
		before := counted(time.Now(), 7*3600)
		ctx, stop := context.WithCancel(t.Context())
		stop()
		before.cfg.Keeper = keeper
		before.persist(ctx, make(chan struct{}))
		time.Sleep(time.Minute) // it is away
		after := New(Config{Keeper: keeper, Targets: func() []Target { return nil }})
		ctx, stop = context.WithCancel(t.Context())
		done := make(chan error)
		go func() { done <- after.Run(ctx) }()
		synctest.Wait()
		for _, window := range []time.Duration{5 * time.Minute, 3 * time.Hour, 8 * time.Hour} {
			was, _ := answersIn(before, window, time.Now())
			is, known := answersIn(after, window, time.Now())
			if known == 0 || math.Abs(is-was) > 0.01*was {
				t.Errorf("in %v there were %v answers, and after the restart %v", window, was, is)
			}
		}
		id := serving.ModelID{Model: "m", Version: "1"}
		series := after.Version(id, 8*time.Hour)
		if n := len(series.Demand); n == 0 || series.Demand[n-10] == nil || *series.Demand[n-10] != 4 {
			t.Errorf("of the version there are %d points, without the demand", n)
		}
		stop()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}

// Two processes that save in turn lose nothing of each other, and count nothing twice.
func TestProcessesShareThePast(t *testing.T) {
	now := time.Now().Truncate(time.Minute)
	keeper := File(filepath.Join(t.TempDir(), "traffic"))
	long, short := counted(now, 7200), counted(now, 600)
	for range 3 {
		for _, c := range []*Collector{long, short} {
			_, err := c.load(t.Context(), keeper)
			require.NoError(t, errors.Join(err, c.save(t.Context(), keeper)))
		}
	}
	want, _ := answersIn(counted(now, 7200), 3*time.Hour, now)
	for name, c := range map[string]*Collector{"the one that is older": long, "the younger one": short} {
		if got, _ := answersIn(c, 3*time.Hour, now); got > want || got < want-60 { // the step in which the younger one began may lack what was before
			t.Errorf("%s knows %v answers of %v", name, got, want)
		}
	}
}

func TestAPastThatCannotBeRead(t *testing.T) {
	good, err := counted(time.Now(), 60).snapshot(time.Now()).write()
	require.NoError(t, err)
	for name, text := range map[string][]byte{"nothing": {}, "no archive": []byte("x"), "half": good[:len(good)/2]} {
		if _, err := readPast(text); err == nil {
			t.Errorf("%s: it is read", name)
		}
	}
	whole, err := readPast(good)
	require.NoError(t, err)
	text := fmt.Sprint(whole)
	for i := range good {
		flipped := bytes.Clone(good)
		flipped[i] ^= 4
		if p, err := readPast(flipped); err == nil && fmt.Sprint(p) != text {
			t.Fatalf("with byte %d flipped it is read as another", i)
		}
	}
	later, err := past{Format: pastFormat + 1}.write()
	require.NoError(t, err)
	if _, err := readPast(later); err == nil {
		t.Error("a later format is read")
	}
}

func FuzzPast(f *testing.F) {
	now := time.Unix(1e9, 0)
	good, err := counted(now, 60).snapshot(now).write()
	require.NoError(f, err)
	f.Add(good)
	f.Fuzz(func(t *testing.T, text []byte) {
		p, err := readPast(text)
		if err != nil {
			return
		}
		c := New(Config{})
		c.restore(p, now)
		again, err := c.snapshot(now).write()
		if err != nil || bytes.Equal(again, nil) {
			t.Errorf("what was read cannot be written: %v", err)
		}
	})
}
