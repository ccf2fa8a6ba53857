package codec

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// checkFloat compares both conversions of s with strconv, bit for bit.
func checkFloat(t interface {
	Helper()
	Errorf(string, ...any)
}, s string) {
	t.Helper()
	p := parser{b: []byte(s)}
	n, err := p.number()
	if err != nil || p.i != len(s) {
		t.Errorf("%s: read %d bytes, error %v", s, p.i, err)
		return
	}
	want64, err64 := strconv.ParseFloat(s, 64)
	if got, ok := n.as64([]byte(s)); ok != (err64 == nil) || math.Float64bits(got) != math.Float64bits(want64) {
		t.Errorf("%s: got %v, %v, want %v, %v", s, got, ok, want64, err64)
	}
	want32, err32 := strconv.ParseFloat(s, 32)
	if got, ok := n.as32([]byte(s)); ok != (err32 == nil) || math.Float32bits(got) != math.Float32bits(float32(want32)) {
		t.Errorf("%s as float32: got %v, %v, want %v, %v", s, got, ok, want32, err32)
	}
}

func TestFloatsAgreeWithStrconv(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	for range 50_000 {
		x := math.Float64frombits(r.Uint64())
		if !math.IsNaN(x) && !math.IsInf(x, 0) {
			checkFloat(t, strconv.FormatFloat(x, 'e', r.IntN(20)-1, 64))
		}
		near := r.NormFloat64() * math.Pow(10, float64(r.IntN(40)-20))
		checkFloat(t, strconv.FormatFloat(near, 'f', -1, 64))
		checkFloat(t, strconv.FormatFloat(near, 'g', 1+r.IntN(25), 64))
		// digits without a float behind them, around the limits of the fast ways
		checkFloat(t, fmt.Sprintf("%d.%0*d", r.Uint64()>>r.IntN(64), 1+r.IntN(19), r.Uint64()>>(4+r.IntN(60))))
		checkFloat(t, fmt.Sprintf("%de%d", r.Uint64()>>r.IntN(64), r.IntN(60)-30))
	}
}

// The middle between two neighbours is where rounding goes wrong, twice so when
// a float32 is rounded by way of a float64.
func TestFloatsHalfway(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	for range 20_000 {
		x := float32(math.Ldexp(r.Float64()+0.5, r.IntN(60)-30))
		middle := (float64(x) + float64(math.Nextafter32(x, 9))) / 2
		exact := strconv.FormatFloat(middle, 'f', -1, 64)
		if !strings.Contains(exact, ".") {
			exact += ".0"
		}
		checkFloat(t, exact)
		checkFloat(t, exact+"1")
		checkFloat(t, exact+"000000000000000000000000000001")
		checkFloat(t, strconv.FormatFloat(middle, 'e', 15, 64))
		checkFloat(t, strconv.FormatFloat(middle, 'e', 18, 64))
	}
	for m := uint64(1<<53 - 3); m < 1<<53+50; m++ {
		for e := range 21 {
			checkFloat(t, fmt.Sprintf("%de-%d", m, e))
			checkFloat(t, fmt.Sprintf("%de%d", m, e))
		}
	}
}

func TestFloatsAtTheEdges(t *testing.T) {
	for _, s := range []string{
		"0", "-0", "0.0", "-0.0e-5", "0e999999999999", "1e-999999999999", "1e999999999999", "1e400", "-1e400",
		"5e-324", "2e-324", "2.4703282292062327e-324", "2.2250738585072014e-308", "1.7976931348623157e308", "1.7976931348623159e308",
		"3.4028234663852886e38", "3.4028235677973366e38", "3.4028235677973365e38", "1e-45", "7e-46", "1.401298464324817e-45",
		"9007199254740993", "9007199254740992", "18446744073709551615", "18446744073709551616", "9999999999999999999", "99999999999999999999",
		"0.000000000000000000000000000001", "0.00012345678901234567", "1.0000000000000000000000000000000000000001",
		"9999999999999999999e-19", "9007199254740993e-22", "1e22", "1e23", "1e-22", "1e-23",
		"0." + strings.Repeat("0", 400) + "1e401", strings.Repeat("9", 400) + "e-400",
		"0." + strings.Repeat("0", 1<<20) + "1e1048577",
	} {
		checkFloat(t, s)
	}
}

func TestFloatsOfAnyShape(t *testing.T) {
	shape := rapid.StringMatching(`-?(0|[1-9][0-9]{0,25})(\.[0-9]{1,25})?([eE][+-]?[0-9]{1,3})?`)
	rapid.Check(t, func(t *rapid.T) { checkFloat(t, shape.Draw(t, "number")) })
}

func BenchmarkFloat(b *testing.B) {
	for _, s := range []string{"0.5", "0.8444218515250481", "0.13436424411240122", "1.2345678901234567e-30"} {
		b.Run(s, func(b *testing.B) {
			text := []byte(s)
			b.ReportAllocs()
			for b.Loop() {
				p := parser{b: text}
				n, err := p.number()
				if x, ok := n.as64(text); err != nil || !ok || x == 0 {
					b.Fatal(x, ok, err)
				}
			}
		})
	}
}
