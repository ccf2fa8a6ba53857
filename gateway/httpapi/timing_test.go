package httpapi

import (
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/topsail-serving/topsail/serving"
)

func TestWhereTheTimeWent(t *testing.T) {
	core := newFake()
	core.timed = func(t *serving.Timing) {
		at := t.Decoded
		next := func() time.Time { at = at.Add(1500 * time.Microsecond); return at }
		t.Selected, t.Looked, t.Sent, t.Heard, t.Combined = next(), next(), next(), next(), next()
		t.Cache, t.Model, t.Replica = "missed", serving.ModelID{Model: "m", Version: "2"}, "r\"1\r\nX-Evil: 1\\"
	}
	r := start(t, Config{}, core)
	const stages = `^decode;dur=(\d+\.\d{3}), select;dur=1\.500, cache;dur=1\.500;desc="missed", wait;dur=1\.500, model;dur=1\.500;desc="m:2 r\\"1\?\?X-Evil: 1\\\\", combine;dur=1\.500, encode;dur=(\d+\.\d{3}), total;dur=(\d+\.\d{3})$`
	for _, body := range []string{`{"input":[1]}`, `{"input_batch":[[1],[2,3]]}`, `{"input_batch":[[1]]}`} {
		plain := r.do(t, "POST", "/doubles/predict", body)
		if header := plain.header.Get("Server-Timing"); header != "" {
			t.Errorf("nobody asked for %s", header)
		}
		got := r.do(t, "POST", "/doubles/predict", body, "x-topsail-timing: 1")
		if got.status != 200 || got.body != plain.body || got.header.Get("X-Evil") != "" {
			t.Errorf("%s: %d %s, and without timing %s", body, got.status, got.body, plain.body)
		}
		found := regexp.MustCompile(stages).FindStringSubmatch(got.header.Get("Server-Timing"))
		if found == nil {
			t.Fatalf("Server-Timing: %s", got.header.Get("Server-Timing"))
		}
	}
	none := r.do(t, "POST", "/doubles/predict", `{"input_batch":[]}`, "x-topsail-timing: 1")
	if header := none.header.Get("Server-Timing"); !regexp.MustCompile(`^decode;dur=\S+ encode;dur=\S+ total;dur=\S+$`).MatchString(header) {
		t.Errorf("the timing of no query: %s", header)
	}
	for _, other := range []string{"0", "true", "", "11"} {
		if got := r.do(t, "POST", "/doubles/predict", `{"input":[1]}`, "X-Topsail-Timing: "+other); got.header.Get("Server-Timing") != "" {
			t.Errorf("%q asks for it", other)
		}
	}
	if got := r.do(t, "POST", "/doubles/predict", `{"input":1}`, "X-Topsail-Timing: 1"); got.status != 400 || got.header.Get("Server-Timing") != "" {
		t.Errorf("a refusal: %d %v", got.status, got.header)
	}
}

// The stages that are known add up to the total.
func TestTheStagesAddUp(t *testing.T) {
	core := newFake()
	core.timed = func(t *serving.Timing) { t.Selected, t.Combined = time.Now(), time.Now() }
	r := start(t, Config{}, core)
	header := r.do(t, "POST", "/doubles/predict", `{"input":[1]}`, "X-Topsail-Timing: 1").header.Get("Server-Timing")
	sum, total, names := 0.0, 0.0, []string{}
	for stage := range strings.SplitSeq(header, ", ") {
		name, dur, _ := strings.Cut(stage, ";dur=")
		ms, err := strconv.ParseFloat(dur, 64)
		if err != nil {
			t.Fatalf("%s: %v", header, err)
		}
		names = append(names, name)
		if name == "total" {
			total = ms
		} else {
			sum += ms
		}
	}
	if strings.Join(names, " ") != "decode select combine encode total" || sum < total-0.01 || sum > total+0.01 || total <= 0 {
		t.Errorf("%s: %v in all", header, sum)
	}
}
