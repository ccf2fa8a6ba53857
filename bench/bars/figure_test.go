package main

import (
	"slices"
	"testing"

	"pgregory.net/rapid"
)

func TestMedian(t *testing.T) {
	for _, test := range []struct {
		samples []float64
		want    float64
	}{{[]float64{7}, 7}, {[]float64{9, 1}, 5}, {[]float64{5, 1, 9}, 5}, {[]float64{4, 100, 1, 3, 2}, 3}, {[]float64{4, 1, 3, 2}, 2.5}} {
		if got := (figure{Samples: test.samples}).Median(); got != test.want {
			t.Errorf("median of %v is %v, want %v", test.samples, got, test.want)
		}
	}
}

func TestMedianHasAsManyBelowAsAbove(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		samples := rapid.SliceOfN(rapid.Float64Range(-1e9, 1e9), 1, 50).Draw(t, "samples")
		before := slices.Clone(samples)
		m := figure{Samples: samples}.Median()
		below, above := 0, 0
		for _, x := range samples {
			if x < m {
				below++
			}
			if x > m {
				above++
			}
		}
		if 2*below > len(samples) || 2*above > len(samples) {
			t.Fatalf("median %v of %v", m, samples)
		}
		if !slices.Equal(samples, before) {
			t.Fatal("the samples were reordered")
		}
	})
}

func TestRatiosAreTakenWithinRounds(t *testing.T) {
	ours, others := []drive{{Rate: 10}, {Rate: 90}}, []drive{{Rate: 20}, {Rate: 100}}
	f := compared("ours / others", times, atLeast(0.75), ours, others, rateOver)
	if !slices.Equal(f.Samples, []float64{0.5, 0.9}) {
		t.Errorf("got %v", f.Samples)
	}
	if got := f.Value() + " " + f.Spread() + " " + f.Wanted() + " " + f.Verdict(); got != "0.70× 0.50–0.90 ≥ 0.75× MISS" {
		t.Errorf("got %q", got)
	}
}

func TestVerdict(t *testing.T) {
	for _, test := range []struct {
		bar     bar
		samples []float64
		want    string
	}{
		{bar{}, []float64{1}, ""},
		{atLeast(2), []float64{1, 2, 2}, "pass"},
		{atLeast(2), []float64{1, 1.9, 2}, "MISS"},
		{atMost(2), []float64{2, 2, 9}, "pass"},
		{atMost(2), []float64{2, 2.1, 9}, "MISS"},
		{below(2), []float64{1, 1.9, 9}, "pass"},
		{below(2), []float64{1, 2, 9}, "MISS"},
		{none(), []float64{0, 0, 0}, "pass"},
		{none(), []float64{0, 0, 1}, "MISS"}, // one run is enough
	} {
		if got := (figure{Samples: test.samples, Bar: test.bar}).Verdict(); got != test.want {
			t.Errorf("%v %v: got %q, want %q", test.bar, test.samples, got, test.want)
		}
	}
}

func TestGrouped(t *testing.T) {
	for n, want := range map[int64]string{0: "0", 999: "999", 1000: "1,000", 1234567: "1,234,567", -999: "-999", -123456: "-123,456"} {
		if got := grouped(n); got != want {
			t.Errorf("%d is written %q, want %q", n, got, want)
		}
	}
}
