package cache

import (
	"encoding/binary"
	"math"
	"math/rand/v2"
	"testing"

	"pgregory.net/rapid"

	"github.com/topsail-serving/topsail/serving"
)

func doubles(xs ...float64) serving.Input {
	var b []byte
	for _, x := range xs {
		b = binary.LittleEndian.AppendUint64(b, math.Float64bits(x))
	}
	return serving.Input{Type: serving.Doubles, Data: b}
}

func floats(xs ...float32) serving.Input {
	var b []byte
	for _, x := range xs {
		b = binary.LittleEndian.AppendUint32(b, math.Float32bits(x))
	}
	return serving.Input{Type: serving.Floats, Data: b}
}

func ints(xs ...int32) serving.Input {
	var b []byte
	for _, x := range xs {
		b = binary.LittleEndian.AppendUint32(b, uint32(x))
	}
	return serving.Input{Type: serving.Ints, Data: b}
}

func definition(model, version string) serving.Definition {
	return serving.Definition{ModelID: serving.ModelID{Model: model, Version: version}}
}

// TestKeysOfDifferentQuestionsDiffer compares every key with every other, of
// questions that differ in as little as there is: 10^10 pairs.
func TestKeysOfDifferentQuestionsDiffer(t *testing.T) {
	datas := questions()
	var keyers []Keyer
	for _, id := range []serving.Definition{definition("m", "1"), definition("m", "2"), definition("m1", ""), definition("", "m1"), definition("n", "1"), definition("m", "11"), definition("m1", "1")} {
		keyers = append(keyers, NewKeyer(id, 0), NewKeyer(id, math.SmallestNonzeroFloat64))
	}
	salts := []string{"", "a", "b", "aa", "\x00", "m", "1", "a rather long salt, of more than sixteen bytes"}
	type question struct {
		keyer, data int
		salt        string
		typ         serving.InputType
	}
	seen := map[Key]question{}
	for i, k := range keyers {
		for _, salt := range salts {
			for typ := serving.Bytes; typ <= serving.Strings; typ++ {
				if k.step > 0 && typ >= serving.Ints && typ <= serving.Doubles {
					continue // numbers may round to the same
				}
				for j, data := range datas {
					q := question{i, j, salt, typ}
					key := k.Key(serving.Input{Type: typ, Data: data}, salt)
					if other, met := seen[key]; met {
						t.Fatalf("%+v and %+v have the key %x", q, other, key)
					}
					seen[key] = q
				}
			}
		}
	}
	if n := len(seen); n < 140_000 {
		t.Errorf("only %d keys were compared", n)
	}
}

// questions are inputs of many lengths, of which some differ in one bit.
func questions() [][]byte {
	random := rand.New(rand.NewPCG(1, 2))
	var all [][]byte
	seen := map[string]bool{}
	add := func(b []byte) {
		if !seen[string(b)] {
			seen[string(b)] = true
			all = append(all, b)
		}
	}
	for _, size := range []int{0, 1, 2, 3, 4, 7, 8, 9, 16, 17, 64, 104, 129, 240, 241, 1024, 3136} {
		b := make([]byte, size)
		add(append([]byte(nil), b...))
		for range 24 {
			if size > 0 {
				b[random.IntN(size)] ^= 1 << random.IntN(8)
			}
			add(append([]byte(nil), b...))
		}
		for i := range b {
			b[i] = byte(random.Uint32())
		}
		add(b)
	}
	return all
}

// A hash of 128 bits keeps only 64 of an input of at most 8 bytes. Keys of two
// versions still differ, also where those 64 bits are made to agree.
func TestShortInputsOfTwoVersionsNeverMeet(t *testing.T) {
	a, b := NewKeyer(definition("a", "1"), 0), NewKeyer(definition("b", "1"), 0)
	if a.base.Hi == b.base.Hi || a.base.Lo == b.base.Lo {
		t.Fatal("two versions share half of their base")
	}
	b.base.Lo = a.base.Lo
	rapid.Check(t, func(t *rapid.T) {
		in := doubles(rapid.Float64().Draw(t, "x"))
		if salt := rapid.String().Draw(t, "salt"); a.Key(in, salt) == b.Key(in, salt) {
			t.Fatalf("both have the key %x", a.Key(in, salt))
		}
	})
}

func TestEqualQuestionsHaveEqualKeys(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		id := definition(rapid.String().Draw(t, "model"), rapid.String().Draw(t, "version"))
		step := rapid.SampledFrom([]float64{0, 0.5}).Draw(t, "step")
		in := doubles(rapid.SliceOf(rapid.Float64()).Draw(t, "input")...)
		salt := rapid.String().Draw(t, "salt")
		copied := serving.Input{Type: in.Type, Data: append([]byte(nil), in.Data...)}
		if NewKeyer(id, step).Key(in, salt) != NewKeyer(id, step).Key(copied, salt) {
			t.Fatal("the keys differ")
		}
	})
}

// Exact keys tell bits apart, not values: what the model is shown decides.
func TestExactKeysTellBitsApart(t *testing.T) {
	k := NewKeyer(definition("m", "1"), 0)
	quiet, negative := math.NaN(), math.Float64frombits(math.Float64bits(math.NaN())|1<<63)
	for _, pair := range [][2]float64{{0, math.Copysign(0, -1)}, {quiet, negative}, {1, math.Nextafter(1, 2)}, {math.MaxFloat64, math.Inf(1)}} {
		if k.Key(doubles(pair[0]), "") == k.Key(doubles(pair[1]), "") {
			t.Errorf("%x and %x have one key", math.Float64bits(pair[0]), math.Float64bits(pair[1]))
		}
	}
}

func TestRoundedKeysAreEqualWithinAStep(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		step := rapid.SampledFrom([]float64{1e-300, 1e-9, 0.01, 0.25, 1, 3, 1e10, 1e300}).Draw(t, "step")
		k := NewKeyer(definition("m", "1"), step)
		multiple := rapid.Float64Range(-1e6, 1e6).Draw(t, "multiple")
		x := multiple * step
		y := (multiple + rapid.Float64Range(-2, 2).Draw(t, "away")) * step
		same := math.Round(x/step) == math.Round(y/step)
		if (k.Key(doubles(7, x), "") == k.Key(doubles(7, y), "")) != same {
			t.Fatalf("step %v: %v and %v are %v and %v steps", step, x, y, x/step, y/step)
		}
	})
}

// Numbers of so many steps that a float64 cannot count them must not be mixed up
// with each other, nor with numbers of few steps.
func TestHugeNumbersStayApart(t *testing.T) {
	huge := []float64{
		math.Inf(1), math.Inf(-1), math.NaN(), math.Copysign(math.NaN(), -1), math.MaxFloat64, -math.MaxFloat64, math.Nextafter(math.MaxFloat64, 0),
		1e300, -1e300, 1e18, -1e18, 1e18 + 256, 1 << 62, -1 << 62, 1 << 63, -1 << 63, 1 << 54, -1 << 54, 1<<54 + 4,
		4611686018427387904 * 4,
	}
	for _, step := range []float64{1, 1e-3, 1e-300} {
		k := NewKeyer(definition("m", "1"), step)
		all := append([]float64(nil), huge...)
		for _, x := range huge {
			// The number of steps that has x's bits, as an integer and as a float.
			bits := int64(math.Float64bits(x))
			all = append(all, float64(bits)*step, float64(bits/2)*step, float64(bits<<1)*step)
		}
		seen := map[Key]float64{}
		for _, x := range all {
			key := k.Key(doubles(x), "")
			other, met := seen[key]
			if met && math.Float64bits(x) != math.Float64bits(other) && math.Abs(x-other) >= step {
				t.Errorf("step %v: %v and %v have one key", step, x, other)
			}
			seen[key] = x
		}
	}
}

// Beyond 2^53 steps a float64 and its neighbour are more than a step apart, and
// both may be as many steps: they are not rounded any more.
func TestNeighboursBeyondCountingStayApart(t *testing.T) {
	k := NewKeyer(definition("m", "1"), 1.9)
	seen := map[Key]bool{}
	x := 1.95 * (1 << 60)
	for range 100 {
		seen[k.Key(doubles(x), "")] = true
		x = math.Nextafter(x, math.Inf(1))
	}
	if len(seen) != 100 {
		t.Errorf("100 numbers have %d keys", len(seen))
	}
}

// One number that takes more room than the others must not shift those after it.
func TestHugeNumbersKeepTheirPlace(t *testing.T) {
	k := NewKeyer(definition("m", "1"), 1)
	a := k.Key(doubles(1e300, 5), "")
	for _, other := range []serving.Input{doubles(5, 1e300), doubles(1e300), doubles(1e300, 5, 0), doubles(-1<<63, 1e300, 5)} {
		if k.Key(other, "") == a {
			t.Errorf("%x has the key of [1e300, 5]", other.Data)
		}
	}
}

func TestRoundingReadsEveryTypeOfNumber(t *testing.T) {
	k := NewKeyer(definition("m", "1"), 10)
	for _, f := range []func(x int) serving.Input{
		func(x int) serving.Input { return ints(int32(x), -1000) },
		func(x int) serving.Input { return floats(float32(x), -1000) },
		func(x int) serving.Input { return doubles(float64(x), -1000) },
	} {
		want := k.Key(f(100), "")
		for x := 80; x <= 120; x++ {
			if same := x >= 95 && x < 105; (k.Key(f(x), "") == want) != same {
				t.Errorf("%v: %d and 100 have one key: %v", f(x).Type, x, !same)
			}
		}
	}
}

func TestRoundedZerosAreEqual(t *testing.T) {
	k := NewKeyer(definition("m", "1"), 0.1)
	if k.Key(doubles(0), "") != k.Key(doubles(math.Copysign(0, -1)), "") {
		t.Error("0 and -0 have two keys")
	}
}

// An app of texts or bytes cannot round; a keyer that is told to leaves them be.
func TestTextsAndBytesAreNotRounded(t *testing.T) {
	k := NewKeyer(definition("m", "1"), 10)
	for _, typ := range []serving.InputType{serving.Bytes, serving.Strings} {
		if k.Key(serving.Input{Type: typ, Data: []byte("abc")}, "") == k.Key(serving.Input{Type: typ, Data: []byte("abd")}, "") {
			t.Errorf("%v are rounded", typ)
		}
	}
}

func TestRoundedKeysNeverMeetExactOnes(t *testing.T) {
	id := definition("m", "1")
	seen := map[Key]float64{}
	for _, step := range []float64{0, 0.1, 0.2, 1, 2, math.SmallestNonzeroFloat64, math.MaxFloat64} {
		k := NewKeyer(id, step)
		for _, x := range []float64{0, 1, -1, 10, 1e300, math.Float64frombits(1), math.Float64frombits(10)} {
			key := k.Key(doubles(x), "")
			if other, met := seen[key]; met && other != step {
				t.Errorf("%v has one key for steps %v and %v", x, step, other)
			}
			seen[key] = step
		}
	}
}
