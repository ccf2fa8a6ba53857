package codec

import "math"

// number is a JSON number as written: mantissa × 10^exponent. It has four fields
// because the compiler keeps larger structs in memory, which is a third slower.
type number struct {
	mantissa uint64
	exponent int
	negative bool
	form     form
}

type form uint8

const (
	whole   form = iota // without point and exponent
	decimal             // with one of them
	long                // more digits than the mantissa holds, which is then wrong
)

// maxDigits is how many decimal digits a mantissa always holds.
const maxDigits = 19

// number reads the number at i.
func (p *parser) number() (number, error) {
	b, i, n := p.b, p.i, number{}
	if i < len(b) && b[i] == '-' {
		n.negative = true
		i++
	}
	first := i
	for ; i < len(b) && isDigit(b[i]); i++ {
		n.mantissa = n.mantissa*10 + uint64(b[i]-'0')
	}
	digits := i - first
	if digits == 0 {
		return n, syntaxError(p.i, "Invalid value.")
	}
	if b[first] == '0' && digits > 1 {
		return n, syntaxError(first+1, "A number must not begin with 0.")
	}
	if i < len(b) && b[i] == '.' {
		n.form = decimal
		i++
		point := i
		for ; i < len(b) && isDigit(b[i]); i++ {
			n.mantissa = n.mantissa*10 + uint64(b[i]-'0')
		}
		if i == point {
			return n, syntaxError(i, "Missing digits after the point of a number.")
		}
		n.exponent = point - i
		digits += i - point
	}
	tooLong := digits > maxDigits && digits-leadingZeros(b[first:i]) > maxDigits
	if i < len(b) && b[i]|0x20 == 'e' {
		n.form = decimal
		exponent, end, ok := readExponent(b, i+1)
		if !ok {
			return n, syntaxError(end, "Missing digits in the exponent of a number.")
		}
		tooLong = tooLong || exponent == maxExponent || exponent == -maxExponent
		n.exponent += exponent
		i = end
	}
	if tooLong {
		n.form = long
	}
	p.i = i
	return n, nil
}

func isDigit(c byte) bool { return c-'0' <= 9 }

// leadingZeros counts the digits before the first that is not 0.
func leadingZeros(digits []byte) (n int) {
	for _, c := range digits {
		switch c {
		case '0':
			n++
		case '.':
		default:
			return n
		}
	}
	return n
}

// maxExponent is where readExponent stops counting, far outside of what can be
// converted without strconv.
const maxExponent = 1 << 20

// readExponent reads the exponent at i and returns it with the offset behind it.
func readExponent(b []byte, i int) (exponent, end int, ok bool) {
	negative := false
	if i < len(b) && (b[i] == '-' || b[i] == '+') {
		negative = b[i] == '-'
		i++
	}
	first := i
	for ; i < len(b) && isDigit(b[i]); i++ {
		exponent = min(exponent*10+int(b[i]-'0'), maxExponent)
	}
	if negative {
		exponent = -exponent
	}
	return exponent, i, i > first
}

// int32 returns n as an int32, if n was written as a whole number that fits.
func (n number) int32() (int32, bool) {
	limit := uint64(math.MaxInt32)
	if n.negative {
		limit++
	}
	if n.form != whole || n.mantissa > limit {
		return 0, false
	}
	x := int64(n.mantissa)
	if n.negative {
		x = -x
	}
	return int32(x), true
}
