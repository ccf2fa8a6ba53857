package traffic

import (
	"cmp"
	"math"
	"slices"
	"time"

	"github.com/topsail-serving/topsail/serving"
	"github.com/topsail-serving/topsail/web/api"
)

// Stages implements api.Traffic.
func (c *Collector) Stages(id serving.ModelID, replica string, window time.Duration) api.VersionStages {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := time.Now()
	all := together{}
	for key, m := range c.replicas {
		if key.model == id.Model && key.version == id.Version && (replica == "" || key.replica == replica) && now.Sub(m.at) <= current {
			for name, st := range m.stages {
				if st.there {
					all.add(name, st, window, m.at)
				}
			}
		}
	}
	shown := api.VersionStages{Model: id.Model, Version: id.Version, At: now.UTC(), Stages: []api.StageTraffic{}}
	for _, t := range all.inOrder() {
		shown.Window = max(shown.Window, int(math.Round(t.span)))
		shown.Stages = append(shown.Stages, t.show())
	}
	shown.Bottleneck = all.bottleneck()
	return shown
}

// together is the stages of several replicas, by name.
type together map[string]*sharedStage

// sharedStage is a stage at several replicas.
type sharedStage struct {
	stage              // but for its past
	name       string  //
	came       sums    // in the window
	span       float64 // the longest of the replicas', in seconds; 0: nothing is known of them but how they are
	rate, busy float64 // inputs a second, and workers that are busy
}

func (all together) add(name string, st *stage, window time.Duration, at time.Time) {
	t := all[name]
	if t == nil {
		t = &sharedStage{name: name}
		t.position, t.after = st.position, st.after
		all[name] = t
	}
	t.workers += st.workers
	t.ready += st.ready
	t.waiting += st.waiting
	came, span := st.within(window, at)
	if span <= 0 {
		return
	}
	t.came.add(came)
	t.span = max(t.span, span)
	t.busy += came.run.seconds / span
	for _, n := range came.ended {
		t.rate += n / span
	}
}

// inOrder has the stages as queries meet them.
func (all together) inOrder() []*sharedStage {
	var list []*sharedStage
	for _, t := range all {
		list = append(list, t)
	}
	slices.SortFunc(list, func(a, b *sharedStage) int {
		return cmp.Or(cmp.Compare(a.position, b.position), cmp.Compare(a.name, b.name))
	})
	return list
}

// bottleneck is the stage that bounds what the others can do: the first without a worker,
// or else the one whose workers are busiest. It is empty where none is busy.
func (all together) bottleneck() string {
	busiest, most := "", 0.0
	for _, t := range all.inOrder() {
		if t.ready == 0 {
			return t.name
		}
		if busy := t.busy / float64(t.ready); busy > most {
			busiest, most = t.name, busy
		}
	}
	return busiest
}

func (t *sharedStage) show() api.StageTraffic {
	shown := api.StageTraffic{Stage: t.name, After: append([]string{}, t.after...), Workers: t.workers, Ready: t.ready, Waiting: t.waiting}
	if t.span == 0 {
		return shown
	}
	shown.Rate, shown.Ended = known(t.rate), map[string]uint64{}
	for status, n := range t.came.ended {
		shown.Ended[status] = uint64(n)
	}
	if t.ready > 0 {
		shown.Busy = known(min(1, t.busy/float64(t.ready)))
	}
	if t.came.batches > 0 {
		shown.BatchMean = math.Round(t.came.inputs/t.came.batches*100) / 100
	}
	shown.Wait, shown.WaitP99 = t.came.wait.show()
	shown.Run, shown.RunP99 = t.came.run.show()
	return shown
}

// show is the mean and the 99th percentile in microseconds; nil for nothing.
func (t timing) show() (mean, tail *float64) {
	n := t.total()
	if n == 0 {
		return nil, nil
	}
	all := inMicros([]*float64{known(t.seconds / n), known(t.quantile(0.99))})
	return all[0], all[1]
}
