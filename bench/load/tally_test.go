package load

import (
	"fmt"
	"testing"
	"time"
)

func TestFindDefault(t *testing.T) {
	for body, want := range map[string]struct {
		explanation string
		isDefault   bool
	}{
		`{"query_id":1,"output":1.0,"default":false}`:                             {"", false},
		`{"output":0,"default":true}`:                                             {"", true},
		`{"output":0,"default":true,"default_explanation":"No models"}`:           {"No models", true},
		`{"default":true,"default_explanation":"a \"b\" \\"}`:                     {`a \"b\" \\`, true},
		`{"default":true,"default_explanation":"cut`:                              {"cut", true},
		`{"batch_predictions":[{"default":false},{"default":true,"output":"x"}]}`: {"", true},
	} {
		explanation, isDefault := findDefault([]byte(body))
		if string(explanation) != want.explanation || isDefault != want.isDefault {
			t.Errorf("%s: %q, %t", body, explanation, isDefault)
		}
	}
}

// A request that waited for a connection is late by the server's fault, one that
// was sent late by a free sender by the generator's.
func TestLatenessIsTheGeneratorsOwn(t *testing.T) {
	start := time.Now()
	at := func(ms int) time.Time { return start.Add(time.Duration(ms) * time.Millisecond) }

	waited := newTally()
	waited.sent(at(10), at(200), at(201))
	if r := waited.finish(time.Second); r.Queued != 1 || r.Lateness.Max != time.Millisecond {
		t.Errorf("queued %d, lateness %v; want 1 and 1 ms", r.Queued, r.Lateness.Max)
	}
	overslept := newTally()
	overslept.sent(at(10), at(5), at(13))
	if r := overslept.finish(time.Second); r.Queued != 0 || r.Lateness.Max.Round(time.Millisecond) != 3*time.Millisecond {
		t.Errorf("queued %d, lateness %v; want 0 and 3 ms", r.Queued, r.Lateness.Max)
	}
}

func TestTallyBoundsExplanations(t *testing.T) {
	tally := newTally()
	for i := range 100 {
		body := fmt.Sprintf(`{"default":true,"default_explanation":"replica %d is full"}`, i)
		tally.answered(message{status: 200, body: []byte(body)}, 0)
	}
	r := tally.finish(time.Second)
	if len(r.Defaults) != maxExplanations+1 || r.Defaults["other"] != 100-maxExplanations {
		t.Errorf("%d explanations, %d others", len(r.Defaults), r.Defaults["other"])
	}
	if r.Answered != 100 || r.Good != 0 {
		t.Errorf("answered %d, good %d; want 100 and 0", r.Answered, r.Good)
	}
}

func TestQuantiles(t *testing.T) {
	tally := newTally()
	for i := range 1000 {
		tally.answered(message{status: 200}, time.Duration(i+1)*time.Millisecond)
	}
	got := tally.finish(2 * time.Second)
	for _, q := range []struct {
		got  time.Duration
		want time.Duration
	}{
		{got.Latency.P50, 500 * time.Millisecond}, {got.Latency.P90, 900 * time.Millisecond},
		{got.Latency.P99, 990 * time.Millisecond}, {got.Latency.P999, 999 * time.Millisecond},
		{got.Latency.Max, time.Second},
	} {
		if off := (q.got - q.want).Abs(); off > q.want/1000 {
			t.Errorf("got %v, want %v within three digits", q.got, q.want)
		}
	}
	if got.Rate != 500 || got.Goodput != 500 {
		t.Errorf("rate %g, goodput %g; want 500", got.Rate, got.Goodput)
	}
}
