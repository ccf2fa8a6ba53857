package cache

import (
	"encoding/binary"
	"math"
	"math/rand/v2"

	"github.com/zeebo/xxh3"

	"github.com/topsail-serving/topsail/serving"
)

// Key names a question to a model version as it is defined: a 128-bit hash of the
// definition, the salt and the encoded input.
type Key = xxh3.Uint128

// secret keeps keys from being computed outside of this process: the hash is fast
// and not cryptographic, and a client that knew its seed could find an input with
// the key of another input.
var secret = rand.Uint64()

// Keyer makes the keys of one definition of a model version, for one way of rounding.
type Keyer struct {
	base Key
	step float64
}

// NewKeyer makes a keyer; a step above 0 rounds numbers to its multiples. Rounded
// keys never meet exact ones.
func NewKeyer(d serving.Definition, step float64) Keyer {
	// The separators cannot occur in names, nor in generations.
	named := append([]byte(nil), d.Model+"\x00"+d.Version+"\x00"+d.Generation+"\x00"...)
	named = binary.LittleEndian.AppendUint64(named, math.Float64bits(step))
	return Keyer{base: xxh3.Hash128Seed(named, secret), step: step}
}

// Key is the key of one input.
func (k Keyer) Key(in serving.Input, salt string) Key {
	base := k.base
	if salt != "" {
		base = xxh3.HashString128Seed(salt, base.Lo)
		base.Hi ^= k.base.Hi
	}
	data := in.Data
	if k.step > 0 && in.Type.Numeric() {
		data = rounded(in, k.step)
	}
	key := xxh3.Hash128Seed(data, base.Lo^uint64(in.Type)*typeStride)
	// For an input of at most 8 bytes the hash is one of 64 bits, spread over 128;
	// the other half of the base makes equal ones of different versions differ.
	key.Hi ^= base.Hi
	return key
}

const (
	// typeStride, an odd number without a pattern, sets the types far apart.
	typeStride = 0x9E3779B97F4A7C15
	// maxMultiple is up to where a float64 counts without leaving out a number.
	maxMultiple = 1 << 53
	// unrounded stands before a number that is beyond, and is not a multiple itself.
	unrounded = 1 << 63
)

// rounded is the input's numbers as whole multiples of step. Numbers beyond
// maxMultiple steps are further apart than a step and stay as they are, as do NaN
// and infinities.
func rounded(in serving.Input, step float64) []byte {
	size := in.Type.DType().Size()
	out := make([]byte, 0, 8*in.Len())
	for at := 0; at+size <= len(in.Data); at += size {
		x := number(in.Type, in.Data[at:])
		if multiple := math.Round(x / step); math.Abs(multiple) <= maxMultiple {
			out = binary.LittleEndian.AppendUint64(out, uint64(int64(multiple)))
		} else {
			out = binary.LittleEndian.AppendUint64(out, unrounded)
			out = binary.LittleEndian.AppendUint64(out, math.Float64bits(x))
		}
	}
	return out
}

func number(t serving.InputType, b []byte) float64 {
	switch t {
	case serving.Ints:
		return float64(int32(binary.LittleEndian.Uint32(b)))
	case serving.Floats:
		return float64(math.Float32frombits(binary.LittleEndian.Uint32(b)))
	default:
		return math.Float64frombits(binary.LittleEndian.Uint64(b))
	}
}
