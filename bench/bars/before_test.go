package main

import (
	"strings"
	"testing"
)

func TestWithoutAnEarlierBuildTheReportSaysSo(t *testing.T) {
	figures, err := before(t.Context(), &bench{options: options{Runs: 1, Seconds: 1}})
	if err != nil || len(figures) != 1 || figures[0].Verdict() != "" {
		t.Fatalf("got %+v, %v", figures, err)
	}
	r := report{Cases: []results{{Name: "before", Figures: figures}}}
	if text := r.markdown(); !strings.Contains(text, "| now / before | not measured | name a build of an earlier commit: -before PROGRAM | ≥ 0.98× |  |") {
		t.Errorf("got\n%s", text)
	}
	if r.missed() != 0 {
		t.Error("a figure that was not measured misses its bar")
	}
}
