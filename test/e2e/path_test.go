//go:build system

package e2e

import (
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/topsail-serving/topsail/containers/gocontainer"
	"github.com/topsail-serving/topsail/serving"
)

func TestAQueryGetsItsOwnAnswer(t *testing.T) {
	r := newRig(t, 1<<20)
	v := version("m", "1")
	r.replica("m/0", v, sum)
	r.predictor.SetCatalog(catalog(5*time.Second, v))
	r.ready(v.ModelID, 1)
	var wg sync.WaitGroup
	for g := range 8 {
		wg.Go(func() {
			for i := range 200 {
				x := float64(g*1000 + i)
				p, err := r.predictor.Predict(t.Context(), query(x, 0.5))
				if want := fmt.Sprint(x + 0.5); err != nil || p.Default || string(p.Output) != want {
					t.Errorf("got %s (default %v: %s), err %v, want %s", p.Output, p.Default, p.Explanation, err, want)
					return
				}
			}
		})
	}
	wg.Wait()
}

func TestABatchKeepsItsOrder(t *testing.T) {
	r := newRig(t, 0)
	v := version("m", "1")
	r.replica("m/0", v, sum)
	r.predictor.SetCatalog(catalog(5*time.Second, v))
	r.ready(v.ModelID, 1)
	var qs []serving.Query
	for i := range 500 {
		qs = append(qs, *query(float64(i), 0.25))
	}
	answers, err := r.predictor.PredictBatch(t.Context(), qs)
	if err != nil {
		t.Fatal(err)
	}
	for i, a := range answers {
		if want := fmt.Sprint(float64(i) + 0.25); string(a.Output) != want {
			t.Fatalf("answer %d = %s (%s), want %s", i, a.Output, a.Explanation, want)
		}
	}
}

func TestWithoutAReplicaTheDefaultComesAtTheDeadline(t *testing.T) {
	r := newRig(t, 0)
	v := version("m", "1")
	const slo = 200 * time.Millisecond
	r.predictor.SetCatalog(catalog(slo, v))
	start := time.Now()
	p, err := r.predictor.Predict(t.Context(), query(1))
	if err != nil || !p.Default || p.Cause != serving.NoReplica || string(p.Output) != "-1" {
		t.Fatalf("got %+v, %v", p, err)
	}
	if took := time.Since(start); took < slo*9/10 || took > slo+time.Second {
		t.Errorf("it took %v", took)
	}
}

func TestASlowModelGetsTheDefaultByTheSLOAndItsLateOutputIsCached(t *testing.T) {
	r := newRig(t, 1<<20)
	v := version("m", "1")
	release := make(chan struct{})
	var calls atomic.Int64
	r.replica("m/0", v, func(in []serving.Value) []gocontainer.Result {
		calls.Add(1)
		<-release
		return sum(in)
	})
	r.predictor.SetCatalog(catalog(100*time.Millisecond, v))
	r.ready(v.ModelID, 1)
	start := time.Now()
	p, err := r.predictor.Predict(t.Context(), query(41, 1))
	took := time.Since(start)
	if err != nil || !p.Default || p.Cause != serving.MissedSLO {
		t.Fatalf("got %+v, %v", p, err)
	}
	if took < 90*time.Millisecond || took > time.Second {
		t.Errorf("the default took %v, with an SLO of 100 ms", took)
	}
	close(release)
	eventually(t, func() bool {
		p, err = r.predictor.Predict(t.Context(), query(41, 1))
		return err == nil && !p.Default && p.Cached && string(p.Output) == "42.0"
	})
	if calls.Load() != 1 {
		t.Errorf("the model was called %d times, want 1", calls.Load())
	}
}

func TestEqualQueriesInFlightAreAskedOnce(t *testing.T) {
	r := newRig(t, 1<<20)
	v := version("m", "1")
	release := make(chan struct{})
	var inputs atomic.Int64
	r.replica("m/0", v, func(in []serving.Value) []gocontainer.Result {
		inputs.Add(int64(len(in)))
		<-release
		return sum(in)
	})
	r.predictor.SetCatalog(catalog(10*time.Second, v))
	r.ready(v.ModelID, 1)
	var wg sync.WaitGroup
	var joined atomic.Int64
	for range 50 {
		wg.Go(func() {
			p, err := r.predictor.Predict(t.Context(), query(7, 7))
			if err != nil || string(p.Output) != "14.0" {
				t.Errorf("got %+v, %v", p, err)
			}
			if p.Cached {
				joined.Add(1)
			}
		})
	}
	eventually(t, func() bool { return inputs.Load() == 1 })
	close(release)
	wg.Wait()
	if inputs.Load() != 1 || joined.Load() != 49 {
		t.Errorf("%d inputs reached the model and %d queries joined, want 1 and 49", inputs.Load(), joined.Load())
	}
}

func TestAModelErrorNamesItself(t *testing.T) {
	r := newRig(t, 0)
	v := version("m", "1")
	r.replica("m/0", v, func(in []serving.Value) []gocontainer.Result {
		out := sum(in)
		out[0].Err = fmt.Errorf("ValueError: too blue")
		return out
	})
	r.predictor.SetCatalog(catalog(5*time.Second, v))
	r.ready(v.ModelID, 1)
	p, err := r.predictor.Predict(t.Context(), query(1))
	if err != nil || p.Cause != serving.ModelError || p.Explanation != "Model error: ValueError: too blue" {
		t.Fatalf("got %+v, %v", p, err)
	}
}

func TestAReplicaThatDiesIsReplacedByTheOther(t *testing.T) {
	r := newRig(t, 0)
	v := version("m", "1")
	stop := r.replica("m/0", v, sum)
	r.replica("m/1", v, sum)
	r.predictor.SetCatalog(catalog(20*time.Second, v))
	r.ready(v.ModelID, 2)
	var wg sync.WaitGroup
	done := make(chan struct{})
	var defaults, sent atomic.Int64
	for g := range 4 {
		wg.Go(func() {
			for i := 0; ; i++ {
				select {
				case <-done:
					return
				default:
				}
				p, err := r.predictor.Predict(t.Context(), query(float64(g), float64(i)))
				sent.Add(1)
				if err != nil || p.Default {
					t.Logf("%+v %v", p, err)
					defaults.Add(1)
				}
			}
		})
	}
	eventually(t, func() bool { return sent.Load() > 1000 })
	stop()
	at := sent.Load()
	eventually(t, func() bool { return sent.Load() > at+1000 })
	close(done)
	wg.Wait()
	if defaults.Load() != 0 {
		t.Errorf("%d of %d queries got the default while a replica stopped", defaults.Load(), sent.Load())
	}
}

func TestTheOldVersionServesUntilTheNewOneIsReady(t *testing.T) {
	r := newRig(t, 0)
	v1, v2 := version("m", "1"), version("m", "2")
	r.replica("m1/0", v1, sum)
	r.predictor.SetCatalog(catalog(2*time.Second, v1))
	r.ready(v1.ModelID, 1)
	ask := func() serving.Prediction {
		p, err := r.predictor.Predict(t.Context(), query(1))
		if err != nil || p.Default {
			t.Fatalf("got %+v, %v", p, err)
		}
		return p
	}
	ask()
	r.predictor.SetCatalog(catalog(2*time.Second, v1, v2))
	if p := ask(); p.Model != v1.ModelID {
		t.Errorf("answered by %v before the new version was ready", p.Model)
	}
	r.replica("m2/0", v2, sum)
	r.ready(v2.ModelID, 1)
	if p := ask(); p.Model != v2.ModelID {
		t.Errorf("answered by %v although the new version is ready", p.Model)
	}
}
