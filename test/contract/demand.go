package contract

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"reflect"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/topsail-serving/topsail/serving"
	"github.com/topsail-serving/topsail/test/wait"
)

// DemandStore is the seam of demand: reports of a second each, by source.
type DemandStore interface {
	// WriteDemand takes a report and does not block. The report shows up soon, or,
	// while there is nowhere to put it, is kept for as long as there is room. One of
	// the same source and second replaces it.
	WriteDemand(r serving.DemandReport)
	// ReadDemand is the reports of the seconds from from, and before to, in order of
	// second, role and name of the source. A source that did not report a second is
	// absent in it. What is returned is the caller's own.
	ReadDemand(ctx context.Context, from, to time.Time) ([]serving.DemandReport, error)
}

// Demand runs the suite. open makes a store without reports, which the test closes
// at its end.
func Demand(t *testing.T, open func(t *testing.T) DemandStore) {
	tests := []struct {
		name string
		run  func(s reports)
	}{
		{"nothing", reports.nothing},
		{"every field", reports.everyField},
		{"the largest figures", reports.largest},
		{"nothing is not silence", reports.alive},
		{"the last report", reports.last},
		{"the range is half open", reports.halfOpen},
		{"sources are apart", reports.sources},
		{"in order", reports.order},
		{"written twice", reports.twice},
		{"replaced", reports.replaced},
		{"names", reports.names},
		{"many versions and sources", reports.many},
		{"at once", reports.atOnce},
		{"results are the reader's own", reports.own},
		{"an ended context", reports.endedContext},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			base := time.Now().UTC().Truncate(time.Second).Add(-time.Minute)
			test.run(reports{T: t, DemandStore: open(t), base: base})
		})
	}
}

type reports struct {
	*testing.T
	DemandStore
	base time.Time
}

var (
	gatewayA = serving.DemandSource{Role: "gateway", Name: "a"}
	gatewayB = serving.DemandSource{Role: "gateway", Name: "b"}
	sidecarA = serving.DemandSource{Role: "sidecar", Name: "a"}
)

// at is a second after the base of the test.
func (s reports) at(second int) time.Time { return s.base.Add(time.Duration(second) * time.Second) }

// report has an arrival for each unit of n.
func (s reports) report(from serving.DemandSource, second, n int) serving.DemandReport {
	return serving.DemandReport{Source: from, Second: s.at(second), Demands: []serving.Demand{
		{ModelID: serving.ModelID{Model: "m", Version: "1"}, Arrivals: uint64(n)},
	}}
}

// read is the seconds [from, to) as they are now.
func (s reports) read(from, to int) []serving.DemandReport {
	s.Helper()
	list, err := s.ReadDemand(s.Context(), s.at(from), s.at(to))
	if err != nil {
		s.Fatal("read: ", err)
	}
	return list
}

// until waits until the seconds [from, to) are as they should be.
func (s reports) until(from, to int, want ...serving.DemandReport) {
	s.Helper()
	var got []serving.DemandReport
	wait.Until(s, fmt.Sprintf("%.1000s", fmt.Sprintf("%+v", want)), func() bool { got = s.read(from, to); return equalReports(got, want) },
		func() string { return fmt.Sprintf("read %.1000s", fmt.Sprintf("%+v", got)) })
}

// equalReports takes no demands and an empty list of them for the same.
func equalReports(a, b []serving.DemandReport) bool {
	return slices.EqualFunc(a, b, func(a, b serving.DemandReport) bool {
		return a.Source == b.Source && a.Second.Equal(b.Second) && a.Second.Location() == time.UTC && a.Last == b.Last && slices.Equal(a.Demands, b.Demands) && slices.Equal(a.Backlogs, b.Backlogs)
	})
}

func (s reports) nothing() {
	if got := s.read(-100, 100); len(got) != 0 {
		s.Errorf("an empty store has %+v", got)
	}
}

// filled is a demand with every field set, each to another value.
func filled(id serving.ModelID) serving.Demand {
	d := serving.Demand{ModelID: id, Profile: serving.LatencyLine{Base: 2_500_000, PerInput: 125}}
	v := reflect.ValueOf(&d).Elem()
	for i := range v.NumField() {
		switch f := v.Field(i); f.Kind() {
		case reflect.Uint64:
			f.SetUint(uint64(100 + i))
		case reflect.Int64:
			f.SetInt(int64(1_000_000_000*i + 1))
		}
	}
	return d
}

func (s reports) everyField() {
	r := s.report(gatewayA, 0, 1)
	r.Demands = []serving.Demand{filled(serving.ModelID{Model: "m", Version: "1"}), filled(serving.ModelID{Model: "m", Version: "2"})}
	r.Backlogs = []serving.Backlog{
		{ModelID: serving.ModelID{Model: "m", Version: "1"}, Stream: "a", Records: 3, Answered: 2, CatchUp: time.Minute},
		{ModelID: serving.ModelID{Model: "m", Version: "2"}, Stream: "b", Records: math.MaxInt64},
	}
	s.WriteDemand(r)
	s.until(0, 1, r)
}

func (s reports) largest() {
	r := s.report(gatewayA, 0, math.MaxInt64)
	r.Demands[0].Concurrency, r.Demands[0].Profile.Base = math.MaxInt64, math.MaxInt64
	s.WriteDemand(r)
	s.until(0, 1, r)
}

// alive has a source that saw nothing, and one that did not report.
func (s reports) alive() {
	quiet := serving.DemandReport{Source: gatewayA, Second: s.at(0)}
	later := serving.DemandReport{Source: gatewayB, Second: s.at(2)}
	s.WriteDemand(quiet)
	s.WriteDemand(later)
	s.until(0, 3, quiet, later)
}

func (s reports) last() {
	going, gone := s.report(gatewayA, 0, 1), serving.DemandReport{Source: gatewayA, Second: s.at(1), Last: true}
	s.WriteDemand(going)
	s.WriteDemand(gone)
	s.until(0, 2, going, gone)
}

func (s reports) halfOpen() {
	var all []serving.DemandReport
	for second := range 4 {
		all = append(all, s.report(gatewayA, second, second+1))
		s.WriteDemand(all[second])
	}
	s.until(0, 4, all...)
	s.until(1, 3, all[1:3]...)
	s.until(2, 2)
	s.until(3, 1)
	got, err := s.ReadDemand(s.Context(), s.at(0).Add(time.Nanosecond), s.at(2).Add(time.Nanosecond))
	if err != nil || !equalReports(got, all[1:3]) {
		s.Errorf("between seconds: %+v, %v; want seconds 1 and 2", got, err)
	}
}

func (s reports) sources() {
	list := []serving.DemandReport{s.report(gatewayA, 0, 1), s.report(gatewayB, 0, 2), s.report(sidecarA, 0, 3)}
	for _, r := range list {
		s.WriteDemand(r)
	}
	s.until(0, 1, list...)
}

func (s reports) order() {
	var want []serving.DemandReport
	for second := range 3 {
		for _, source := range []serving.DemandSource{gatewayA, gatewayB, sidecarA} {
			want = append(want, s.report(source, second, 1+len(want)))
		}
	}
	for i := range want {
		s.WriteDemand(want[(i*5+3)%len(want)]) // 5 and 9 have no common factor
	}
	s.until(0, 3, want...)
}

func (s reports) twice() {
	r := s.report(gatewayA, 0, 7)
	s.WriteDemand(r)
	s.until(0, 1, r)
	again := r
	again.Demands = slices.Clone(r.Demands)
	s.WriteDemand(again)
	other := s.report(gatewayB, 0, 8) // seen after what was written before it
	s.WriteDemand(other)
	s.until(0, 1, r, other)
}

// replaced has fewer versions than what it replaces.
func (s reports) replaced() {
	r := s.report(gatewayA, 0, 7)
	r.Demands = append(r.Demands, filled(serving.ModelID{Model: "n", Version: "1"}))
	s.WriteDemand(r)
	s.until(0, 1, r)
	r = s.report(gatewayA, 0, 5)
	s.WriteDemand(r)
	s.until(0, 1, r)
}

// names are those that every format would break on.
func (s reports) names() {
	nasty := []string{`a b`, `a,b`, `a=b`, `a"b`, `a\b`, `a\`, "a\nb", "a\r\nb", "a\tb", `a%20b`, `a+b`, `a:b`, `#a`, `;`, `é€😀`, `0`, `")|> drop() //`}
	var want []serving.DemandReport
	for i, name := range nasty {
		r := s.report(serving.DemandSource{Role: "gateway", Name: name}, i, i+1)
		r.Demands[0].ModelID = serving.ModelID{Model: name, Version: name}
		want = append(want, r)
		s.WriteDemand(r)
	}
	s.until(0, len(nasty), want...)
}

func (s reports) many() {
	var want []serving.DemandReport
	for second := range 3 {
		for source := range 10 {
			r := serving.DemandReport{Source: serving.DemandSource{Role: "gateway", Name: numbered("gateway-", source)}, Second: s.at(second)}
			for i := range 200 {
				r.Demands = append(r.Demands, filled(serving.ModelID{Model: fmt.Sprintf("model-%03d", i), Version: "1"}))
			}
			want = append(want, r)
			s.WriteDemand(r)
		}
	}
	s.until(0, 3, want...)
}

// atOnce has sources write while somebody reads: what is read is whole.
func (s reports) atOnce() {
	const sources, seconds, versions = 4, 20, 20
	var writing sync.WaitGroup
	var want []serving.DemandReport
	for second := range seconds {
		for source := range sources {
			r := serving.DemandReport{Source: serving.DemandSource{Role: "sidecar", Name: numbered("replica-", source)}, Second: s.at(second)}
			for i := range versions {
				r.Demands = append(r.Demands, filled(serving.ModelID{Model: numbered("m-", i), Version: numbered("", second)}))
			}
			slices.SortFunc(r.Demands, func(a, b serving.Demand) int { return cmp.Compare(a.Model, b.Model) })
			want = append(want, r)
		}
	}
	for source := range sources {
		writing.Go(func() {
			for i, r := range want {
				if i%sources == source {
					r.Demands = slices.Clone(r.Demands)
					s.WriteDemand(r)
				}
			}
		})
	}
	for range 20 {
		for _, r := range s.read(0, seconds) {
			if !slices.ContainsFunc(want, func(w serving.DemandReport) bool {
				return equalReports([]serving.DemandReport{r}, []serving.DemandReport{w})
			}) {
				s.Fatalf("a report that nobody wrote: %+v", r)
			}
		}
	}
	writing.Wait()
	s.until(0, seconds, want...)
}

func (s reports) own() {
	r := s.report(gatewayA, 0, 7)
	s.WriteDemand(r)
	want := s.report(gatewayA, 0, 7)
	s.until(0, 1, want)
	s.read(0, 1)[0].Demands[0].Arrivals = 0
	s.until(0, 1, want)
}

func (s reports) endedContext() {
	ctx, cancel := context.WithCancel(s.Context())
	cancel()
	if _, err := s.ReadDemand(ctx, s.at(0), s.at(1)); !errors.Is(err, context.Canceled) {
		s.Errorf("read in an ended context: %v", err)
	}
}
