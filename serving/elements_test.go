package serving

import (
	"math"
	"testing"

	"pgregory.net/rapid"
)

func TestEveryHalfReadsBackAsItWas(t *testing.T) {
	for bits := range 1 << 16 {
		h := uint16(bits)
		if x := Half(h); x == x && ToHalf(x) != h {
			t.Fatalf("%#04x is %v, which becomes %#04x", h, x, ToHalf(x))
		}
		if x := BrainFloat(h); x == x && ToBrainFloat(x) != h {
			t.Fatalf("bfloat %#04x is %v, which becomes %#04x", h, x, ToBrainFloat(x))
		}
	}
	if x := Half(ToHalf(float32(math.NaN()))); x == x {
		t.Error("NaN became", x)
	}
}

// The nearest of all halves, with the even one of two that are as near, is what ToHalf must give.
func TestToHalfIsTheNearest(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		x := float32(rapid.Float64Range(-70000, 70000).Draw(t, "x"))
		if rapid.Bool().Draw(t, "tiny") {
			x /= 1 << 28
		}
		got := ToHalf(x)
		if math.Abs(float64(x)) >= 65520 {
			if got&0x7fff != 0x7c00 {
				t.Fatalf("%v became %#04x", x, got)
			}
			return
		}
		off := func(h uint16) float64 { return math.Abs(float64(Half(h)) - float64(x)) }
		for _, near := range []uint16{got - 1, got + 1} {
			if y := Half(near); y != y || near>>15 != got>>15 {
				continue
			}
			if off(near) < off(got) || off(near) == off(got) && got&1 == 1 && got != near {
				t.Fatalf("%v became %#04x = %v, and %#04x = %v is nearer", x, got, Half(got), near, Half(near))
			}
		}
	})
}

func TestDatatypes(t *testing.T) {
	for i := range dtypes {
		d := DType(i)
		name := d.Datatype()
		if name == "" {
			continue
		}
		if name == "BYTES" {
			d = Blob
		}
		if got, err := ParseDatatype(name); err != nil || got != d || got.Datatype() != name {
			t.Errorf("%s is read as %v, %v", name, got, err)
		}
	}
	for _, name := range []string{"FLOAT", "", "fp32"} {
		if _, err := ParseDatatype(name); err == nil {
			t.Errorf("%q is a datatype", name)
		}
	}
}
