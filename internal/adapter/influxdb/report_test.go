package influxdb

import (
	"math"
	"reflect"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/topsail-serving/topsail/serving"
)

// drawReport is any report.
func drawReport(t *rapid.T) serving.DemandReport {
	r := serving.DemandReport{
		Source: serving.DemandSource{Role: rapid.SampledFrom([]string{"gateway", "sidecar", "else where"}).Draw(t, "role"), Name: rapid.String().Draw(t, "name")},
		Second: time.Unix(rapid.Int64Range(0, math.MaxInt32).Draw(t, "second"), 0).UTC(),
		Last:   rapid.Bool().Draw(t, "last"),
	}
	for range rapid.IntRange(0, 5).Draw(t, "demands") {
		var all [len(columns)]uint64
		for i := range all {
			all[i] = rapid.Uint64Max(math.MaxInt64).Draw(t, columns[i])
			if rapid.Bool().Draw(t, "zero") {
				all[i] = 0
			}
		}
		r.Demands = append(r.Demands, demandOf(serving.ModelID{Model: rapid.String().Draw(t, "model"), Version: rapid.String().Draw(t, "version")}, &all))
	}
	for range rapid.IntRange(0, 3).Draw(t, "backlogs") {
		r.Backlogs = append(r.Backlogs, serving.Backlog{
			ModelID: serving.ModelID{Model: rapid.String().Draw(t, "model"), Version: rapid.String().Draw(t, "version")}, Stream: rapid.String().Draw(t, "stream"),
			Records: rapid.Uint64().Draw(t, "records"), Answered: rapid.Uint64().Draw(t, "answered"), CatchUp: time.Duration(rapid.Int64Min(0).Draw(t, "catch up")),
		})
	}
	return r
}

func TestReportIsReadAsItWasWritten(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := drawReport(t)
		text := encode(&r)
		if strings.ContainsFunc(text, func(c rune) bool { return c < ' ' || c > '~' || c == '"' || c == '\\' }) {
			t.Fatalf("%q has characters that must be escaped", text)
		}
		if got, err := decode(text); err != nil || !reflect.DeepEqual(got, r) {
			t.Fatalf("%q is read as %+v, %v; want %+v", text, got, err, r)
		}
	})
}

// TestReportText is the format, which other releases read.
func TestReportText(t *testing.T) {
	second := time.Unix(1767225600, 0).UTC()
	gateway := serving.DemandReport{Source: serving.DemandSource{Role: "gateway", Name: "g 1"}, Second: second, Demands: []serving.Demand{
		{ModelID: serving.ModelID{Model: "digits", Version: "3"}, Arrivals: 12, Defaults: 1, Concurrency: 123456},
		{ModelID: serving.ModelID{Model: "wine", Version: "1+b"}},
	}}
	sidecar := serving.DemandReport{Source: serving.DemandSource{Role: "sidecar", Name: "r"}, Second: second, Last: true, Demands: []serving.Demand{
		{ModelID: serving.ModelID{Model: "digits", Version: "3"}, Admitted: 5, Refused: 6, Batches: 7, Inputs: 8, Waited: 9, Service: 10, Profile: serving.LatencyLine{Base: 11, PerInput: 12}},
	}}
	for text, r := range map[string]serving.DemandReport{
		"1 gateway g+1 1767225600;digits 3 12 0 1 123456;wine 1%2Bb": gateway,
		"1 gateway g 1767225600;wine 1 9 0 0 0 0 0 0 0 0 0 0 0 4": {
			Source: serving.DemandSource{Role: "gateway", Name: "g"}, Second: second, Demands: []serving.Demand{{ModelID: serving.ModelID{Model: "wine", Version: "1"}, Arrivals: 9, Diverted: 4}},
		},
		"1 sidecar r 1767225600 last;digits 3 0 0 0 0 5 6 7 8 9 10 11 12": sidecar,
		"1 gateway g 1767225600;wine 1 2;wine 1 0 0 0 0 0 0 0 0 0 0 0 0 backlog red+wine 120000 98 300000000000": {
			Source: serving.DemandSource{Role: "gateway", Name: "g"}, Second: second, Demands: []serving.Demand{{ModelID: serving.ModelID{Model: "wine", Version: "1"}, Arrivals: 2}},
			Backlogs: []serving.Backlog{{ModelID: serving.ModelID{Model: "wine", Version: "1"}, Stream: "red wine", Records: 120000, Answered: 98, CatchUp: 5 * time.Minute}},
		},
		"1 gateway g 1767225600": {Source: serving.DemandSource{Role: "gateway", Name: "g"}, Second: second},
	} {
		if got := encode(&r); got != text {
			t.Errorf("%q, want %q", got, text)
		}
		if got, err := decode(text); err != nil || !reflect.DeepEqual(got, r) {
			t.Errorf("%q is read as %+v, %v; want %+v", text, got, err, r)
		}
	}
	later := "1 sidecar r 1767225600 last more;digits 3 0 0 0 0 5 6 7 8 9 10 11 12 0 14 15"
	if got, err := decode(later); err != nil || !reflect.DeepEqual(got, sidecar) {
		t.Errorf("of a later release: %+v, %v", got, err)
	}
}

func TestReportThatIsNone(t *testing.T) {
	for _, text := range []string{
		"", "1", "1 gateway g", "2 gateway g 1767225600", "1 gateway g soon", "1 gateway %zz 5", "1 %zz g 5",
		"1 gateway g 5;", "1 gateway g 5;m", "1 gateway g 5;m 1 x", "1 gateway g 5;m 1 -1", "1 gateway g 5;m 1 1;;m 1 1", "1 gateway g 5;%zz 1 1", "1 gateway g 5;m %zz 1",
		"1 gateway g 5;m 1 18446744073709551616", "1 gateway g 5;m 1 0 0 0 0 0 0 0 0 0 0 0 0 backlog s 1 2", "1 gateway g 5;m 1 0 0 0 0 0 0 0 0 0 0 0 0 backlog s 1 2 x",
		"1 gateway g 5;m 1 0 0 0 0 0 0 0 0 0 0 0 0 backlog %zz 1 2 3",
	} {
		if r, err := decode(text); err == nil {
			t.Errorf("%q is read as %+v", text, r)
		}
	}
}

// TestEveryFigureHasItsColumn sets one after the other.
func TestEveryFigureHasItsColumn(t *testing.T) {
	seen := map[serving.Demand]bool{}
	for i := range columns {
		var all [len(columns)]uint64
		all[i] = 7
		d := demandOf(serving.ModelID{}, &all)
		if back := figures(&d); *back != all {
			t.Errorf("%s becomes %v", columns[i], back)
		}
		seen[d] = true
	}
	want := reflect.TypeFor[serving.Demand]().NumField() - 1 + reflect.TypeFor[serving.LatencyLine]().NumField() - 1
	if len(seen) != want || len(columns) != want {
		t.Errorf("%d columns for %d figures", len(seen), want)
	}
}

func FuzzDecodeReport(f *testing.F) {
	for _, text := range []string{"1 gateway g+1 1767225600 last;digits 3 12 0 1 123456;wine 1%2Bb", "1 sidecar r 5", "1 a b 1;m 1"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		r, err := decode(text)
		if err != nil {
			return
		}
		if again, err := decode(encode(&r)); err != nil || !reflect.DeepEqual(again, r) {
			t.Errorf("%q is read as %+v, and what is written then as %+v, %v", text, r, again, err)
		}
	})
}

func BenchmarkEncode(b *testing.B) {
	r := report("gateway-1", time.Unix(1767225600, 0).UTC(), 200)
	b.ReportAllocs()
	for b.Loop() {
		encode(&r)
	}
}

func BenchmarkDecode(b *testing.B) {
	r := report("gateway-1", time.Unix(1767225600, 0).UTC(), 200)
	text := encode(&r)
	b.SetBytes(int64(len(text)))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := decode(text); err != nil {
			b.Fatal(err)
		}
	}
}
