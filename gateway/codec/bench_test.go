package codec_test

import (
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"

	"github.com/topsail-serving/topsail/gateway/codec"
	"github.com/topsail-serving/topsail/serving"
)

// body writes {"input":[...]} with n elements.
func body(n int, element func(r *rand.Rand) string) []byte {
	r := rand.New(rand.NewPCG(1, 2))
	elements := make([]string, n)
	for i := range elements {
		elements[i] = element(r)
	}
	return []byte(`{"input":[` + strings.Join(elements, ",") + `]}`)
}

func BenchmarkDecode(b *testing.B) {
	double := func(r *rand.Rand) string { return strconv.FormatFloat(r.NormFloat64(), 'g', -1, 64) }
	pixel := func(r *rand.Rand) string { return strconv.FormatFloat(float64(r.IntN(256))/255, 'g', -1, 64) }
	short := func(r *rand.Rand) string { return strconv.FormatFloat(r.Float64(), 'f', 4, 64) }
	integer := func(r *rand.Rand) string { return strconv.Itoa(r.IntN(2000) - 1000) }
	for _, bench := range []struct {
		name string
		t    serving.InputType
		body []byte
	}{
		{"13doubles", serving.Doubles, body(13, double)},
		{"64ints", serving.Ints, body(64, integer)},
		{"784floats", serving.Floats, body(784, pixel)},
		{"784shortfloats", serving.Floats, body(784, short)},
		{"text1KB", serving.Strings, []byte(`{"input":"` + strings.Repeat("A plain text; ", 73) + `"}`)},
		{"texts10KB", serving.Strings, []byte(`{"input_batch":["` + strings.Repeat("eight by", 128) + strings.Repeat(`","`+strings.Repeat("eight by", 128), 9) + `"]}`)},
		{"bytes1KB", serving.Bytes, []byte(`{"input":"` + strings.Repeat("QUJD", 341) + `"}`)},
	} {
		b.Run(bench.name, func(b *testing.B) {
			b.ReportAllocs()
			b.SetBytes(int64(len(bench.body)))
			for b.Loop() {
				if _, err := codec.DecodePredict(bench.body, takes(bench.t), 4096); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func BenchmarkAppendPrediction(b *testing.B) {
	for _, bench := range []struct {
		name string
		p    serving.Prediction
	}{
		{"output", serving.Prediction{QueryID: 1<<52 + 12345, Output: []byte("0.8444218515250481")}},
		{"default", serving.Prediction{QueryID: 7, Output: []byte(`"none"`), Default: true,
			Explanation: (&serving.Failure{Cause: serving.MissedSLO}).Explain()}},
		{"missing", serving.Prediction{QueryID: 7, Output: []byte("1"), Missing: []serving.ModelID{{Model: "slow", Version: "1"}}}},
	} {
		b.Run(bench.name, func(b *testing.B) {
			b.ReportAllocs()
			var buf []byte
			for b.Loop() {
				buf = codec.AppendPrediction(buf[:0], bench.p)
			}
		})
	}
}
