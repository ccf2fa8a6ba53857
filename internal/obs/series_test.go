package obs

import (
	"bytes"
	"fmt"
	"maps"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"testing"

	dto "github.com/prometheus/client_model/go"

	"github.com/topsail-serving/topsail/test/require"
)

var (
	bakedDesc = NewDesc("baked_total", "Loaves.", "oven", "kind")
	heatDesc  = NewDesc("heat_celsius", "Heat.", "oven")
	timeDesc  = NewDesc("baking_seconds", "Time.", "oven")
)

// bakery writes series.
type bakery struct{ ovens []string }

func (b bakery) writeSeries(to *SeriesWriter) {
	for _, oven := range b.ovens {
		to.Counter(bakedDesc, 7, oven, "rye")
		to.Counter(bakedDesc, 0, oven, "burnt") // is not read
		to.Gauge(heatDesc, 230, oven)
		to.Histogram(timeDesc, []float64{1, 2}, []uint64{3, 0, 1}, 12.5, oven)
	}
}

// full has a metric of each kind.
func full() *Registry {
	r := NewRegistry()
	r.Counters("asked_total", "Questions.", "app").WithLabelValues("a").Add(3)
	r.SharedCounters("shared_total", "Questions.", "app").WithLabelValues("a").Add(1)
	r.SharedCounters("shared_total", "Questions.", "app").WithLabelValues("b").Add(2)
	r.Gauges("depth", "Depth.", "app").WithLabelValues("b").Set(-1)
	r.Histograms("took_seconds", "Time.", Sizes(), "app").WithLabelValues("a").Observe(3)
	r.CounterFunc("drops_total", "Drops.", func() float64 { return 5 })
	r.GaugeFunc("room", "Room.", func() float64 { return 6 })
	doors, open := NewDesc("doors", "Doors.", "side"), NewDesc("open", "1 while the door is open.", "side")
	r.Add(func(to *SeriesWriter) {
		to.Gauge(doors, 4, "front")
		to.Flag(open, true, "front")
		to.Flag(open, false, "back")
	}, doors, open)
	r.Add(bakery{[]string{"left", "right"}}.writeSeries, bakedDesc, heatDesc, timeDesc)
	return r
}

// seen notes what is read, by metric and labels.
func seen(all map[string]string, names []string) Readers {
	readers := Readers{}
	for _, name := range names {
		readers[name] = func(s *Series) {
			key := fmt.Sprint(name, s.Label("app"), s.Label("oven"), s.Label("kind"), s.Label("side"), s.Label("no"))
			all[key] = fmt.Sprint(all[key], s.Value, s.Bounds, s.Counts, s.Sum, s.Count())
		}
	}
	return readers
}

// Read reads what is gathered, and what a page of it says.
func TestReadReadsWhatIsGathered(t *testing.T) {
	r := full()
	names := []string{"asked_total", "shared_total", "depth", "took_seconds", "drops_total", "room", "doors", "open", "baked_total", "heat_celsius", "baking_seconds"}
	read, gathered, paged := map[string]string{}, map[string]string{}, map[string]string{}
	r.Read(seen(read, names))
	families, err := r.Gather()
	require.NoError(t, err)
	seen(gathered, names).ReadFamilies(families)
	delete(gathered, "baked_totalleftburnt")
	delete(gathered, "baked_totalrightburnt")
	if families, err = ReadFamilies(bytes.NewReader(page(r)), 1<<20); err != nil {
		t.Fatal(err)
	}
	seen(paged, names).ReadFamilies(families)
	delete(paged, "baked_totalleftburnt")
	delete(paged, "baked_totalrightburnt")
	some := map[string]string{}
	request := httptest.NewRequest("GET", "/metrics?"+url.Values{"name[]": names}.Encode(), nil)
	request.Header.Set("Accept", FamiliesType)
	answer := httptest.NewRecorder()
	r.Handler().ServeHTTP(answer, request)
	if families, err = ReadFamilies(answer.Body, 1<<20); err != nil || len(families) != len(names) {
		t.Fatalf("%d families, %v", len(families), err)
	}
	seen(some, names).ReadFamilies(families)
	if len(read) != 16 || !maps.Equal(read, gathered) || !maps.Equal(read, paged) || !maps.Equal(read, some) {
		t.Errorf("read %v\ngathered %v\non a page %v\non a page of some %v", read, gathered, paged, some)
	}
	if got := read["baking_secondsleft"]; got != "0 [1 2] [3 0 1] 12.5 4" {
		t.Errorf("a histogram is %s", got)
	}
}

// A sparse histogram says the same with fewer buckets.
func TestSparseHistograms(t *testing.T) {
	r := full()
	request := httptest.NewRequest("GET", "/metrics?name[]=took_seconds&name[]=baking_seconds&histograms=sparse", nil)
	request.Header.Set("Accept", FamiliesType)
	answer := httptest.NewRecorder()
	r.Handler().ServeHTTP(answer, request)
	families, err := ReadFamilies(answer.Body, 1<<20)
	require.NoError(t, err)
	read := map[string]string{}
	seen(read, []string{"took_seconds", "baking_seconds"}).ReadFamilies(families)
	for name, want := range map[string]string{
		"took_secondsa":      "0 [2 4] [0 1 0] 3 1", // and eleven empty ones
		"baking_secondsleft": "0 [1 2] [3 0 1] 12.5 4",
	} {
		if read[name] != want {
			t.Errorf("%s is %s, want %s", name, read[name], want)
		}
	}
}

// Nothing is collected that has no reader.
func TestReadReadsNothingElse(t *testing.T) {
	r := full()
	r.GaugeFunc("costly", "Costs.", func() float64 { t.Error("it was collected"); return 0 })
	all := map[string]string{}
	r.Read(seen(all, []string{"heat_celsius", "unknown"}))
	if got := slices.Sorted(maps.Keys(all)); !slices.Equal(got, []string{"heat_celsiusleft", "heat_celsiusright"}) {
		t.Errorf("read %v", got)
	}
}

func TestHistogramsThatMakeNoSense(t *testing.T) {
	f := func(v float64) *float64 { return &v }
	n := func(v uint64) *uint64 { return &v }
	h := &HistogramSample{SampleCount: n(3), SampleSum: f(1)}
	name := "took"
	var s Series
	readers := Readers{name: func(one *Series) { s = *one }}
	read := func() { readers.ReadFamilies([]*Family{{Name: &name, Metric: []*Sample{{Histogram: h}}}}) }
	if read(); len(s.Bounds) != 0 || s.Count() != 3 {
		t.Errorf("without buckets it is %+v", s)
	}
	h.Bucket = append(h.Bucket, bucketOf(1, 2), bucketOf(2, 1))
	if read(); len(s.Bounds) != 0 || len(s.Counts) != 0 {
		t.Errorf("with less below a higher bound it is %+v", s)
	}
	h.Bucket = []*dto.Bucket{bucketOf(1, 2), bucketOf(2, 5)}
	if read(); s.Count() != 5 || s.Counts[2] != 0 {
		t.Errorf("with more in buckets than in all it is %+v", s)
	}
}

// A series that cannot be exposed does not take the others with it.
func TestSeriesThatCannotBeExposed(t *testing.T) {
	r := NewRegistry()
	doors := NewDesc("doors", "Doors.", "side")
	r.Add(func(to *SeriesWriter) {
		to.Gauge(doors, 4, "front")
		to.Gauge(doors, 5, "\xff")
		to.Gauge(doors, 6, "one", "too many")
		to.Counter(NewDesc("no name!", "None."), 7)
		to.Cumulative(NewDesc("took", "Time."), map[float64]uint64{1: 2}, 3, 4)
	}, doors)
	answer := httptest.NewRecorder()
	r.Handler().ServeHTTP(answer, httptest.NewRequest("GET", "/metrics", nil))
	for _, want := range []string{`doors{side="front"} 4`, `took_bucket{le="1"} 2`, "took_sum 4", "took_count 3"} {
		if !strings.Contains(answer.Body.String(), want+"\n") {
			t.Errorf("%s is not on the page", want)
		}
	}
	if answer.Code != 200 || strings.Count(answer.Body.String(), "doors{") != 1 {
		t.Errorf("%d: %s", answer.Code, answer.Body)
	}
}

// Handing series over takes no memory.
func TestReadingASourceAllocatesNothing(t *testing.T) {
	w := SeriesWriter{readers: Readers{"baked_total": func(*Series) {}, "heat_celsius": func(*Series) {}}}
	source := bakery{[]string{"left", "right"}}
	bounds, counts := []float64{1, 2}, []uint64{3, 0, 1}
	if n := testing.AllocsPerRun(100, func() {
		for _, oven := range source.ovens {
			w.Counter(bakedDesc, 7, oven, "rye")
			w.Gauge(heatDesc, 230, oven)
			w.Histogram(timeDesc, bounds, counts, 12.5, oven)
		}
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func bucketOf(bound float64, upTo uint64) *dto.Bucket {
	return &dto.Bucket{UpperBound: &bound, CumulativeCount: &upTo}
}

// A page of some metrics is made as all pages are for those who want text.
func TestPagesOfSomeMetrics(t *testing.T) {
	r := full()
	for _, c := range []struct{ query, accept, want string }{
		{"name[]=room", "text/plain", "# HELP room Room.\n# TYPE room gauge\nroom 6\n"},
	} {
		request := httptest.NewRequest("GET", "/metrics?"+c.query, nil)
		request.Header.Set("Accept", c.accept)
		answer := httptest.NewRecorder()
		r.Handler().ServeHTTP(answer, request)
		if !strings.Contains(answer.Body.String(), c.want) {
			t.Errorf("%s: %q", c.query, answer.Body)
		}
	}
}
