package cache

import (
	"encoding/binary"
	"math"

	"github.com/zeebo/xxh3"

	"topsail/serving"
)

// Key names a question to a model version: a 128-bit hash of the version, the
// salt and the encoded input.
type Key = xxh3.Uint128

// Keyer makes the keys of one model version, for one way of rounding.
type Keyer struct {
	seed uint64
	step float64
}

// NewKeyer makes a keyer; a step above 0 rounds numbers to its multiples. Rounded
// keys never meet exact ones.
func NewKeyer(id serving.ModelID, step float64) Keyer {
	h := xxh3.New()
	// The separators cannot occur in names.
	_, _ = h.WriteString(id.Model + "\x00" + id.Version + "\x00")
	_, _ = h.Write(binary.LittleEndian.AppendUint64(nil, math.Float64bits(step)))
	return Keyer{seed: h.Sum64(), step: step}
}

// Key is the key of one input.
func (k Keyer) Key(in serving.Input, salt string) Key {
	data := in.Data
	if k.step > 0 {
		data = rounded(in, k.step)
	}
	seed := k.seed + uint64(in.Type)
	if salt == "" {
		return xxh3.Hash128Seed(data, seed)
	}
	h := xxh3.NewSeed(seed)
	_, _ = h.Write(binary.LittleEndian.AppendUint64(nil, uint64(len(salt))))
	_, _ = h.WriteString(salt)
	_, _ = h.Write(data)
	return h.Sum128()
}

// rounded is the input's numbers as whole multiples of step. Multiples beyond
// what an int64 holds stay as they are, so that large numbers are not mixed up.
func rounded(in serving.Input, step float64) []byte {
	size := in.Type.DType().Size()
	out := make([]byte, 0, 8*in.Len())
	for at := 0; at+size <= len(in.Data); at += size {
		x := number(in.Type, in.Data[at:])
		if multiple := math.Round(x / step); math.Abs(multiple) < 1<<62 {
			out = binary.LittleEndian.AppendUint64(out, uint64(int64(multiple)))
		} else {
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
