package main

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/topsail-serving/topsail/test/require"
)

func exampleReport() *report {
	return &report{
		Machine: machine{CPU: "A Processor", Cores: 2, Kernel: "6.1", Go: "go1.26"},
		Options: options{Runs: 3, Seconds: 1},
		Cases: []results{{Name: "path", About: "the path", Figures: []figure{
			{What: "bare route", Unit: perSecond, Samples: []float64{98000.4, 100000, 104000}},
			{What: "path / bare route", Unit: times, Samples: []float64{0.35, 0.39, 0.5}, Bar: atLeast(0.4)},
			{What: "default outputs", Unit: count, Samples: []float64{0, 0, 0}, Bar: none()},
		}}},
	}
}

func TestMarkdown(t *testing.T) {
	const want = "A Processor, 2 cores, Linux 6.1, go1.26; medians of 3 runs of 1 s, and the smallest and the largest run.\n" + `
### ` + "`path`" + `: the path

| | median | runs | bar | |
|---|---:|---:|---:|---|
| bare route | 100,000/s | 98,000–104,000 | – |  |
| path / bare route | 0.39× | 0.35–0.50 | ≥ 0.4× | MISS |
| default outputs | 0 | 0–0 | none | pass |
`
	if got := exampleReport().markdown(); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

func TestTextShowsEveryFigure(t *testing.T) {
	var b strings.Builder
	require.NoError(t, exampleReport().text(&b))
	for _, want := range []string{"path: the path", "bare route", "100,000/s", "0.35–0.50", "≥ 0.4×", "MISS", "none", "pass"} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("%q is missing in\n%s", want, b.String())
		}
	}
}

func TestJSON(t *testing.T) {
	b, err := json.Marshal(exampleReport())
	require.NoError(t, err)
	const want = `{"what":"path / bare route","unit":"×","median":0.39,"samples":[0.35,0.39,0.5],"bar":"≥ 0.4×","verdict":"MISS"}`
	if !strings.Contains(string(b), want) {
		t.Errorf("%s is missing in %s", want, b)
	}
}

func TestMissed(t *testing.T) {
	if n := exampleReport().missed(); n != 1 {
		t.Errorf("%d bars are missed, want 1", n)
	}
}

func TestCPUModel(t *testing.T) {
	if got := cpuModel([]byte("processor\t: 0\nmodel name\t: A Processor\nflags\t: fpu\nmodel name\t: Another\n")); got != "A Processor" {
		t.Errorf("got %q", got)
	}
	if got := cpuModel(nil); got != "" {
		t.Errorf("got %q for nothing", got)
	}
}
