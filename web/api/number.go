package api

import (
	"encoding/json"
	"math"
	"slices"
	"strconv"
	"strings"
)

// wholeNumber is a whole number that is written as JavaScript and Python write floats,
// such as 20000.0 or 2e4, and where it stands in a text.
type wholeNumber struct {
	start, end int64
	digits     string // as integers are written
}

// mostExact is what floats can count to, one by one.
const mostExact = 1 << 53

// number notes a whole number that is written as a float, the token before. It returns
// the number in digits; any other it returns as it stands.
func (s *shape) number(n json.Number) json.Number {
	if !strings.ContainsAny(string(n), ".eE") {
		return n
	}
	f, err := strconv.ParseFloat(string(n), 64)
	if err != nil || f != math.Trunc(f) || math.Abs(f) > mostExact {
		return n
	}
	end := s.text.InputOffset()
	w := wholeNumber{end - int64(len(n)), end, strconv.FormatInt(int64(f), 10)}
	s.whole = append(s.whole, w)
	return json.Number(w.digits)
}

// plain is a text with its whole numbers, which are in order, in digits.
func plain(text []byte, whole []wholeNumber) []byte {
	if len(whole) == 0 {
		return text
	}
	var parts [][]byte
	from := int64(0)
	for _, w := range whole {
		parts = append(parts, text[from:w.start], []byte(w.digits))
		from = w.end
	}
	return slices.Concat(append(parts, text[from:])...)
}
