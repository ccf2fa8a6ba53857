package codec

import (
	"math"
	"math/bits"
	"strconv"
)

// powersOfTen are those that float64 holds exactly.
var powersOfTen = [...]float64{
	1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11,
	1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22,
}

// as64 returns the float64 nearest to n, text being how n was written. It agrees
// with strconv.ParseFloat in every bit; false means too large.
func (n number) as64(text []byte) (float64, bool) {
	if x, ok := n.fast(); ok {
		return x, true
	}
	x, err := strconv.ParseFloat(string(text), 64) // does not allocate for short texts
	return x, err == nil
}

// as32 is as as64, for the nearest float32.
func (n number) as32(text []byte) (float32, bool) {
	if x, ok := n.fast(); ok && !halfway(x) {
		return float32(x), true
	}
	x, err := strconv.ParseFloat(string(text), 32)
	return float32(x), err == nil
}

// halfway says whether x lies in the middle between two float32 numbers. Only
// then can rounding the decimal to float64 have hidden to which side it belongs.
// It is for the results of fast, which are all in the normal range of float32.
func halfway(x float64) bool {
	const below = 1<<29 - 1 // the bits that float32 does not have
	return math.Float64bits(x)&below == 1<<28
}

// fast converts the numbers that people and programs write: up to 19 digits and
// a small exponent.
func (n number) fast() (x float64, ok bool) {
	m, e := n.mantissa, n.exponent
	switch {
	case n.form == long:
		return 0, false
	case e == 0:
		x = float64(m)
	case m < 1<<53 && e < 0 && e >= -22: // Clinger: both sides are exact, so one rounding
		x = float64(m) / powersOfTen[-e]
	case m < 1<<53 && e > 0 && e <= 22:
		x = float64(m) * powersOfTen[e]
	case m >= 1<<53 && e < 0 && e >= -maxDigits:
		x = divide(m, uint64(powersOfTen[-e]))
	default:
		return 0, false
	}
	if n.negative {
		x = -x
	}
	return x, true
}

// divide returns the float64 nearest to m/d, for m and d above 0. The quotient
// is computed to 63 or 64 bits, with its lowest bit set when a remainder is left;
// that is enough for the conversion to round as if it saw all bits.
func divide(m, d uint64) float64 {
	zm, zd := bits.LeadingZeros64(m), bits.LeadingZeros64(d)
	m, d = m<<zm, d<<zd
	q, r := bits.Div64(m>>1, m<<63, d)
	if r != 0 {
		q |= 1
	}
	scale := math.Float64frombits(uint64(1023+zd-zm-63) << 52) // 2^(zd-zm-63)
	return float64(q) * scale
}

// float reads the number at i as a float64.
func (p *parser) float() (float64, error) {
	first := p.i
	n, err := p.number()
	if err != nil {
		return 0, err
	}
	x, ok := n.as64(p.b[first:p.i])
	if !ok {
		return 0, contentError(first, "is too large for a double")
	}
	return x, nil
}
