package bandit

import (
	"encoding/binary"
	"math"

	"github.com/topsail-serving/topsail/serving"
)

const (
	defaultFeatures = 16
	maxFeatures     = 64
)

// contextOf writes what an input says into x, as a vector of length 1: a constant, and
// then the input's numbers. Of more numbers than there is room for, each is added to or
// taken from a place that its hash gives (Weinberger et al., "Feature hashing for large
// scale multitask learning", 2009). Numbers of any size will do: of small ones the size
// matters the most, of large ones the direction.
func contextOf(x []float64, in serving.Input) {
	clear(x)
	numbers, n := x[1:], in.Len()
	for i := range n {
		v := number(in, i)
		if n <= len(numbers) {
			numbers[i] = v
			continue
		}
		place, sign := bucket(i, len(numbers))
		numbers[place] += sign * v
	}
	x[0] = 1 + length(numbers)
	scale(x, 1/length(x))
}

// largest is above which a number is taken for infinite: its square is still finite.
const largest = 1e100

// number is the i-th of an input, or 0 where it is not a number.
func number(in serving.Input, i int) float64 {
	var v float64
	switch le := binary.LittleEndian; in.Type {
	case serving.Ints:
		v = float64(int32(le.Uint32(in.Data[4*i:])))
	case serving.Floats:
		v = float64(math.Float32frombits(le.Uint32(in.Data[4*i:])))
	case serving.Doubles:
		v = math.Float64frombits(le.Uint64(in.Data[8*i:]))
	}
	if math.IsNaN(v) {
		return 0
	}
	return min(max(v, -largest), largest)
}

// bucket is the place and the sign of the i-th number, by the finalizer of splitmix64.
func bucket(i, places int) (place int, sign float64) {
	h := uint64(i+1) * 0x9e3779b97f4a7c15
	h = (h ^ h>>30) * 0xbf58476d1ce4e5b9
	h = (h ^ h>>27) * 0x94d049bb133111eb
	h ^= h >> 31
	return int(h >> 1 % uint64(places)), 1 - 2*float64(h&1)
}

func length(x []float64) float64 {
	total := 0.0
	for _, v := range x {
		total += v * v
	}
	return math.Sqrt(total)
}

func scale(x []float64, by float64) {
	for i := range x {
		x[i] *= by
	}
}
