package main

import (
	"maps"
	"testing"
)

func TestParseAnswers(t *testing.T) {
	const text = `# HELP topsail_gateway_answers_total Answers to queries, by cause.
# TYPE topsail_gateway_answers_total counter
topsail_gateway_answers_total{app="bench",cause="missed_slo"} 3
topsail_gateway_answers_total{app="bench",cause="ok"} 1.25e+06
topsail_gateway_answers_total{app="bench",cause="refused_late"} 4
topsail_gateway_late_outputs_total{app="bench"} 99
`
	got, err := parseAnswers([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	if want := (answers{"missed_slo": 3, "ok": 1250000, "refused_late": 4}); !maps.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	later := answers{"missed_slo": 5, "ok": 1250010, "refused_late": 4, "draining": 1}
	if d := later.since(got); d["ok"] != 10 || d.defaults() != 3 {
		t.Errorf("since then: %v", d)
	}
	for _, bad := range []string{"", "up 1\n", `topsail_gateway_answers_total{app="bench",cause="ok"} many`} {
		if got, err := parseAnswers([]byte(bad)); err == nil {
			t.Errorf("%q was read as %v", bad, got)
		}
	}
}
