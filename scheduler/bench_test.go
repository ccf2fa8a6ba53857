package scheduler

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/topsail-serving/topsail/serving"
)

type always struct{}

func (always) Valid() bool   { return true }
func (always) Fence() uint64 { return 1 }

// BenchmarkTick is the work of one second, without what adapters do: two versions
// have queries, and the others are at zero.
func BenchmarkTick(b *testing.B) {
	for _, versions := range []int{2, 200} {
		b.Run(fmt.Sprintf("versions=%d", versions), func(b *testing.B) {
			begin := time.Unix(1_700_000_000, 0).UTC()
			l := newLoop(New(Config{}), always{}, newJournal(nil, nil, nil, nil), begin)
			cat, jobs := benchmarkCatalog(versions)
			l.takeCatalog(cat, begin)
			l.takeReplicas(map[serving.Definition]int{{ModelID: jobs[0].ModelID}: 4, {ModelID: jobs[1].ModelID}: 4})
			_, again := benchmarkCatalog(versions) // equal, and elsewhere in memory
			now := begin
			tick := func() {
				jobs, again = again, jobs
				now = now.Add(time.Second)
				from := l.windows.From(now)
				r := reading{began: now, demand: true, from: from, to: now, reports: benchmarkReports(from, now, jobs[:2]), jobs: jobs}
				l.takeReading(context.Background(), r, now)
			}
			for range 200 {
				tick()
			}
			b.ReportAllocs()
			for b.Loop() {
				tick()
			}
			if len(l.active) != 2 || l.entries[jobs[0].ModelID].decision.Rule != "capacity" {
				b.Fatalf("%d versions are looked at: %+v", len(l.active), l.entries[jobs[0].ModelID].decision)
			}
		})
	}
}

func benchmarkCatalog(n int) (*serving.Catalog, []serving.Job) {
	cat := &serving.Catalog{Revision: 1, Models: map[string]*serving.Model{}, Apps: map[string]*serving.App{}}
	var jobs []serving.Job
	for i := range n {
		id := serving.ModelID{Model: fmt.Sprintf("model-%03d", i), Version: "1"}
		v := &serving.Version{ModelID: id, Scale: &serving.ScaleSpec{Max: 20}}
		cat.Models[id.Model] = &serving.Model{Name: id.Model, Current: "1", Serving: "1", Versions: map[string]*serving.Version{"1": v}}
		cat.Apps[id.Model] = &serving.App{Name: id.Model, SLO: serving.Duration(100 * time.Millisecond), Models: []string{id.Model}}
		job := serving.Job{ModelID: id, Index: uint64(i + 1)}
		if i < 2 {
			job.Count = 4
		}
		jobs = append(jobs, job)
	}
	return cat, jobs
}

// benchmarkReports are those of two gateways and eight sidecars.
func benchmarkReports(from, to time.Time, jobs []serving.Job) []serving.DemandReport {
	var all []serving.DemandReport
	for s := max(from.Unix(), to.Unix()-3); s < to.Unix(); s++ {
		second := time.Unix(s, 0).UTC()
		for _, name := range []string{"g1", "g2"} {
			r := serving.DemandReport{Source: serving.DemandSource{Role: "gateway", Name: name}, Second: second}
			for _, j := range jobs {
				r.Demands = append(r.Demands, serving.Demand{ModelID: j.ModelID, Arrivals: 500, Concurrency: 20 * time.Second})
			}
			all = append(all, r)
		}
		for i := range 8 {
			all = append(all, serving.DemandReport{Source: serving.DemandSource{Role: "sidecar", Name: fmt.Sprint(i)}, Second: second,
				Demands: []serving.Demand{{ModelID: jobs[i%2].ModelID, Profile: serving.LatencyLine{Base: 12 * time.Millisecond, PerInput: 2 * time.Millisecond}}}})
		}
	}
	return all
}
