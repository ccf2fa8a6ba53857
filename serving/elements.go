package serving

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"unicode/utf8"
)

// errTooLarge says that the dimensions of a value multiply to more than any frame carries.
var errTooLarge = errors.New("the shape has more than 2^31 elements")

// Elements is the number of elements that a shape has, or -1 when it is not one, or has more than
// any frame can carry.
func Elements(shape []int) int {
	n := 1
	for _, d := range shape {
		if d < 0 || d > math.MaxInt32 {
			return -1
		}
		if n *= d; n > math.MaxInt32 {
			return -1
		}
	}
	return n
}

// AppendElement appends one element of a tensor of Strings or Blobs.
func AppendElement[T string | []byte](data []byte, element T) []byte {
	return append(binary.LittleEndian.AppendUint32(data, uint32(len(element))), element...)
}

// NextElement takes the first element of a tensor of Strings or Blobs off its data; ok is false
// when the data do not have a whole one.
func NextElement(data []byte) (element, rest []byte, ok bool) {
	if len(data) < 4 {
		return nil, nil, false
	}
	n := binary.LittleEndian.Uint32(data)
	if uint64(n) > uint64(len(data)-4) {
		return nil, nil, false
	}
	return data[4 : 4+n], data[4+n:], true
}

// Check says why the data are not what type and shape say, or nil.
func (v *Value) Check() error {
	n := Elements(v.Shape)
	if n < 0 {
		return errTooLarge
	}
	switch size := v.DType.Size(); {
	case size > 0 && len(v.Data) != n*size:
		return fmt.Errorf("the shape needs %d bytes, and %d came", n*size, len(v.Data))
	case v.DType == Bool:
		for _, b := range v.Data {
			if b > 1 {
				return errors.New("a bool is 0 or 1")
			}
		}
	case size == 0 && len(v.Shape) == 0:
		return checkText(v.DType, v.Data)
	case size == 0:
		return v.checkStrings(n)
	}
	return nil
}

// checkStrings says why the data are not n elements, or nil.
func (v *Value) checkStrings(n int) error {
	data := v.Data
	for i := range n {
		element, rest, ok := NextElement(data)
		if !ok {
			return fmt.Errorf("the shape needs %d elements, and the data end in element %d", n, i)
		}
		if err := checkText(v.DType, element); err != nil {
			return fmt.Errorf("element %d: %w", i, err)
		}
		data = rest
	}
	if len(data) > 0 {
		return fmt.Errorf("%d bytes follow the last of %d elements", len(data), n)
	}
	return nil
}

func checkText(t DType, text []byte) error {
	if t == String && !utf8.Valid(text) {
		return errors.New("the text is not UTF-8")
	}
	return nil
}

// Half is a float16 as the number that it means.
func Half(bits uint16) float32 {
	sign, exponent, mantissa := uint32(bits>>15)<<31, uint32(bits>>10&0x1f), uint32(bits&0x3ff)
	switch {
	case exponent == 0x1f: // infinite, or not a number
		return math.Float32frombits(sign | 0xff<<23 | mantissa<<13)
	case exponent > 0:
		return math.Float32frombits(sign | (exponent+112)<<23 | mantissa<<13)
	}
	small := float32(mantissa) / (1 << 24)
	return math.Float32frombits(sign | math.Float32bits(small))
}

// ToHalf is the float16 nearest to x, ties to even; what is too large becomes infinite.
func ToHalf(x float32) uint16 {
	bits := math.Float32bits(x)
	sign, exponent, mantissa := uint16(bits>>31)<<15, int(bits>>23&0xff)-112, bits&0x7fffff
	switch {
	case bits&0x7fffffff > 0x7f800000:
		return sign | 0x7e00 // not a number
	case exponent >= 0x1f:
		return sign | 0x7c00
	case exponent <= -11:
		return sign // below half of the smallest
	}
	shift := uint(13)
	if exponent <= 0 { // subnormal: the leading one becomes part of the mantissa
		mantissa |= 0x800000
		shift, exponent = uint(14-exponent), 0
	}
	half := uint32(exponent)<<10 + mantissa>>shift
	rest, tie := mantissa&(1<<shift-1), uint32(1)<<(shift-1)
	if rest > tie || rest == tie && half&1 == 1 {
		half++ // may carry into the exponent, which is right
	}
	return sign | uint16(half)
}

// BrainFloat is a bfloat16 as the number that it means.
func BrainFloat(bits uint16) float32 { return math.Float32frombits(uint32(bits) << 16) }

// ToBrainFloat is the bfloat16 nearest to x, ties to even.
func ToBrainFloat(x float32) uint16 {
	bits := math.Float32bits(x)
	if bits&0x7fffffff > 0x7f800000 {
		return uint16(bits>>16) | 0x40 // not a number, quiet
	}
	return uint16((bits + 0x7fff + bits>>16&1) >> 16)
}
