package codec_test

import (
	"encoding/binary"
	"errors"
	"math"
	"reflect"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/topsail-serving/topsail/gateway/codec"
	"github.com/topsail-serving/topsail/serving"
	"github.com/topsail-serving/topsail/test/require"
)

const maxBatch = 3

func doubles(xs ...float64) serving.Input {
	in := serving.Input{Type: serving.Doubles}
	for _, x := range xs {
		in.Data = binary.LittleEndian.AppendUint64(in.Data, math.Float64bits(x))
	}
	return in
}

func floats(xs ...float32) serving.Input {
	in := serving.Input{Type: serving.Floats}
	for _, x := range xs {
		in.Data = binary.LittleEndian.AppendUint32(in.Data, math.Float32bits(x))
	}
	return in
}

func ints(xs ...int32) serving.Input {
	in := serving.Input{Type: serving.Ints}
	for _, x := range xs {
		in.Data = binary.LittleEndian.AppendUint32(in.Data, uint32(x))
	}
	return in
}

func text(s string) serving.Input {
	return serving.Input{Type: serving.Strings, Data: []byte(s)}
}

func blob(s string) serving.Input {
	return serving.Input{Type: serving.Bytes, Data: []byte(s)}
}

func TestDecodeInput(t *testing.T) {
	for _, test := range []struct {
		body string
		want serving.Input
	}{
		{`{"input":[1.5,-2,0.1,3e2,-0]}`, doubles(1.5, -2, 0.1, 300, math.Copysign(0, -1))},
		{" {\n\"input\"\t:\r [ 1 , 2 ] } \n", doubles(1, 2)},
		{`{"input":[1e-400,1.7976931348623157e308]}`, doubles(0, math.MaxFloat64)},
		{`{"input":[1E+2,1e-2,123456789012345678901234567890]}`, doubles(100, 0.01, 123456789012345678901234567890)},
		{`{"input":[1.5,16777217,3.4028235e38,1e-60]}`, floats(1.5, 16777216, math.MaxFloat32, 0)},
		{`{"input":[0,-0,2147483647,-2147483648]}`, ints(0, 0, math.MaxInt32, math.MinInt32)},
		{`{"input":""}`, text("")},
		{`{"input":"häuser 🏠"}`, text("häuser 🏠")},
		{`{"input":"\"\\\/\b\f\n\r\t\u00e4\ud83c\udfe0\u0000 end"}`, text("\"\\/\b\f\n\r\tä🏠\x00 end")},
		{`{"input":"\\ud83c \\\ud83c\udfe0"}`, text(`\ud83c \🏠`)},
		{`{"input":[true,0.5,false]}`, doubles(1, 0.5, 0)},
		{`{"input":[ true , false ]}`, ints(1, 0)},
		{"\ufeff" + `{"input":[1]}`, doubles(1)},
		{`{"input":"QUJDRA=="}`, blob("ABCD")},
		{`{"input":"QUJDRA"}`, blob("ABCD")},
		{`{"input":"QUJD\r\nRA==\n"}`, blob("ABCD")},
		{`{"input":"\/\/\/\/"}`, blob("\xff\xff\xff")},
		{`{"in\u0070ut":[1]}`, doubles(1)},
		{`{"input":[1],"input":[2]}`, doubles(1)},
		{`{"input_batch":[[7],[8]],"input":[1]}`, doubles(1)},
		{`{"input":[1],"input_batch":"ignored"}`, doubles(1)},
		{`{"else":{"a":[{},[],null,true,false,"x",-1.5e3]},"input":[1],"more":1e999,"strict":false}`, doubles(1)},
	} {
		got, err := codec.DecodePredict([]byte(test.body), takes(test.want.Type), maxBatch)
		if want := (codec.PredictRequest{Query: serving.Query{Input: test.want}}); err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%s as %v:\n got %v, %v\nwant %v", test.body, test.want.Type, got, err, want)
		}
	}
}

func TestDecodeBatch(t *testing.T) {
	for _, test := range []struct {
		body string
		want []serving.Input
		t    serving.InputType
	}{
		{`{"input_batch":[]}`, []serving.Input{}, serving.Doubles},
		{`{"input_batch": [ ] }`, []serving.Input{}, serving.Strings},
		{`{"input_batch":[[1],[2,3]]}`, []serving.Input{doubles(1), doubles(2, 3)}, serving.Doubles},
		{`{"input_batch" : [ [1] , [2] , [3] ] }`, []serving.Input{ints(1), ints(2), ints(3)}, serving.Ints},
		{`{"input_batch":["a",""]}`, []serving.Input{text("a"), text("")}, serving.Strings},
		{`{"input_batch":["QQ=="]}`, []serving.Input{blob("A")}, serving.Bytes},
		{`{"input_batch":[[1]],"input_batch":[[2]]}`, []serving.Input{floats(1)}, serving.Floats},
	} {
		got, err := codec.DecodePredict([]byte(test.body), takes(test.t), maxBatch)
		if want := (codec.PredictRequest{Batch: test.want}); err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%s as %v:\n got %v, %v\nwant %v", test.body, test.t, got, err, want)
		}
	}
}

func TestDecodeOptions(t *testing.T) {
	for _, test := range []struct {
		members string
		want    serving.Query
	}{
		{`"version":"2"`, serving.Query{Version: "2"}},
		{`"version":"\u0032","version":"3"`, serving.Query{Version: "2"}},
		{`"uid":"ann"`, serving.Query{User: "ann"}},
		{`"uid":-12345678901234567890`, serving.Query{User: "-12345678901234567890"}},
		{`"salt":"a\"b"`, serving.Query{Salt: `a"b`}},
		{`"salt":7`, serving.Query{Salt: "7"}},
		{`"slo_micros":1500`, serving.Query{Timeout: 1500 * time.Microsecond}},
		{`"slo_micros":9999999999999999999`, serving.Query{Timeout: serving.MaxSLO}},
		{`"no_cache":true`, serving.Query{NoCache: true}},
		{`"context":"\u0061b"`, serving.Query{Context: "ab"}},
		{`"context":-7`, serving.Query{Context: "-7"}},
		{`"context":"` + strings.Repeat("c", 256) + `"`, serving.Query{Context: strings.Repeat("c", 256)}},
		{`"explain":true,"explain":false`, serving.Query{Explain: true}},
		{`"no_cache":false,"slo_micros":1,"slo_micros":0`, serving.Query{Timeout: time.Microsecond}},
	} {
		for _, body := range []string{`{` + test.members + `,"input":[1]}`, `{"input":[1],` + test.members + `}`} {
			got, err := codec.DecodePredict([]byte(body), takes(serving.Doubles), maxBatch)
			test.want.Input = got.Input
			if err != nil || !reflect.DeepEqual(got.Query, test.want) {
				t.Errorf("%s: got %+v, %v, want %+v", body, got.Query, err, test.want)
			}
		}
	}
}

func TestDecodeErrors(t *testing.T) {
	for _, test := range []struct {
		t      serving.InputType
		body   string
		detail string
	}{
		// wrong content
		{serving.Doubles, ``, "the body is empty: send JSON, such as {\"input\": [1.5, 2]}"},
		{serving.Doubles, "  \n", `the body is empty: send JSON, such as {"input": [1.5, 2]}`},
		{serving.Doubles, `{"input":[1]} x`, "the body is not JSON: nothing may follow the object, at byte 14"},
		{serving.Doubles, `{}`, "the body needs the key \"input\", or \"input_batch\" for several inputs"},
		{serving.Doubles, `{"Input":[1]}`, `Input is unknown: did you mean "input"? ("strict": false ignores it)`},
		{serving.Doubles, `{"input":["a"]}`, "input[0] must be a number, and is a string"},
		{serving.Doubles, `{"input":[1,null]}`, "input[1] must be a number, and is null"},
		{serving.Floats, `{"input":[null]}`, "input[0] must be a number, and is null"},
		{serving.Floats, `{"input":[{}]}`, "input[0] must be a number, and is an object"},
		{serving.Ints, `{"input":[fals]}`, "the body is not JSON: invalid value, at byte 10"},
		{serving.Ints, `{"input":[[1]]}`, "input[0] must be a number, and is an array"},
		{serving.Strings, `{"input_batch":["a",1]}`, "input_batch[1] must be a string, and is a number"},
		{serving.Ints, `{"input_batch":[1]}`, "input_batch[0] must be an array of whole numbers, such as [1, 2], and is a number"},
		{serving.Doubles, `{"input":"a"}`, "input must be an array of numbers, such as [1.5, 2], and is a string"},
		{serving.Strings, `{"input":["a"]}`, "input must be a string, and is an array"},
		{serving.Bytes, `{"input":null,"input_batch":[]}`, "input must be a string of bytes in base64, and is null"},
		{serving.Doubles, `{"input_batch":{}}`, "input_batch must be an array of inputs, and is an object"},
		{serving.Doubles, `{"input":[1],"version":1}`, "version must be a string, and is a number"},
		{serving.Bytes, `{"input_batch":[1]}`, "input_batch[0] must be a string of bytes in base64, and is a number"},

		// other formats
		{serving.Strings, `{"input":"a\ud83c"}`, "the body is not JSON: the surrogate pair in string is incomplete, at byte 11"},
		{serving.Strings, `{"input":"\udfe0\ud83c"}`, "the body is not JSON: the surrogate pair in string is incomplete, at byte 10"},
		{serving.Strings, `{"input":"a","x":"\ud83c\u0041"}`, "the body is not JSON: the surrogate pair in string is incomplete, at byte 18"},
		{serving.Doubles, "\x1f\x8b\x08\x00", "the body is not JSON: it is compressed by gzip: send the header Content-Encoding: gzip with it"},
		{serving.Doubles, "\xff\xfe{\x00", "the body is not JSON: it is UTF-16: send UTF-8"},
		{serving.Doubles, "{\x00\"\x00", "the body is not JSON: it is UTF-16: send UTF-8"},
		{serving.Doubles, "\x00{\x00\"", "the body is not JSON: it is UTF-16: send UTF-8"},
		{serving.Doubles, "x\x9c\xabV", "the body is not JSON: it is compressed by deflate: send the header Content-Encoding: deflate with it"},
		{serving.Doubles, "\x89PNG\r\n", "the body is not JSON: it is not text: send JSON, and bytes in it as base64"},
		{serving.Doubles, "\x28\xb5\x2f\xfd", "the body is not JSON: invalid value, at byte 0"},
		{serving.Doubles, "input=%5B1%5D", `the body is not JSON: it is a form: send JSON, such as {"input": [1.5, 2]}; curl does with -d '{"input": …}'`},
		{serving.Doubles, "------WebKitFormBoundaryX\r\n", `the body is not JSON: it is a form: send JSON, such as {"input": [1.5, 2]}; curl does with -d '{"input": …}'`},

		// numbers that do not fit
		{serving.Ints, `{"input":[2147483648]}`, "input[0] must be a whole number between -2147483648 and 2147483647, without point or exponent"},
		{serving.Ints, `{"input":[-2147483649]}`, "input[0] must be a whole number between -2147483648 and 2147483647, without point or exponent"},
		{serving.Ints, `{"input":[18446744073709551617]}`, "input[0] must be a whole number between -2147483648 and 2147483647, without point or exponent"},
		{serving.Ints, `{"input":[1.0]}`, "input[0] must be a whole number between -2147483648 and 2147483647, without point or exponent"},
		{serving.Ints, `{"input":[1e2]}`, "input[0] must be a whole number between -2147483648 and 2147483647, without point or exponent"},
		{serving.Floats, `{"input":[3.5e38]}`, "input[0] must be between -3.4028235e38 and 3.4028235e38"},
		{serving.Doubles, `{"input":[1, 1e999]}`, "input[1] is too large for a double"},

		{serving.Doubles, `{"input_batch":[[1],[2,3],[4,"x"]]}`, "input_batch[2][1] must be a number, and is a string"},

		// empty and too many
		{serving.Doubles, `{"input":[ ]}`, "input is empty: give at least one number"},
		{serving.Ints, `{"input_batch":[[1],[]]}`, "input_batch[1] is empty: give at least one number"},
		{serving.Bytes, `{"input":""}`, "input is empty: give at least one byte, in base64"},
		{serving.Bytes, `{"input":"\r\n"}`, "input is empty: give at least one byte, in base64"},
		{serving.Doubles, `{"input_batch":[[1],[2],[3],[4]]}`, "input_batch has more than 3 inputs: send them in several requests"},

		// base64
		{serving.Bytes, `{"input":"QUJDR"}`, "input is not base64: use the standard alphabet (A-Z a-z 0-9 + /), with or without padding"},
		{serving.Bytes, `{"input":"QUJD=RA="}`, "input is not base64: use the standard alphabet (A-Z a-z 0-9 + /), with or without padding"},
		{serving.Bytes, `{"input":"_-__"}`, "input is not base64: use the standard alphabet (A-Z a-z 0-9 + /), with or without padding"},

		// options
		{serving.Doubles, `{"input":[1],"slo_micros":0}`, "slo_micros must be a whole number of microseconds above 0"},
		{serving.Doubles, `{"input":[1],"slo_micros":-5}`, "slo_micros must be a whole number of microseconds above 0"},
		{serving.Doubles, `{"input":[1],"slo_micros":1.5}`, "slo_micros must be a whole number of microseconds above 0"},
		{serving.Doubles, `{"input":[1],"slo_micros":"5"}`, "slo_micros must be a whole number of microseconds above 0"},
		{serving.Doubles, `{"input":[1],"uid":1.5}`, "uid must be a string or a whole number, of at most 256 bytes"},
		{serving.Doubles, `{"input":[1],"uid":null}`, "uid must be a string or a whole number, of at most 256 bytes"},
		{serving.Doubles, `{"input":[1],"salt":"` + strings.Repeat("s", 257) + `"}`, "salt must be a string or a whole number, of at most 256 bytes"},
		{serving.Doubles, `{"input":[1],"no_cache":1}`, "no_cache must be true or false, and is a number"},
		{serving.Doubles, `{"input":[1],"uid":"` + strings.Repeat("u", 10_000) + `"}`, "uid must be a string or a whole number, of at most 256 bytes"},
		{serving.Doubles, `{"input":[1],"context":"` + strings.Repeat("c", 257) + `"}`, "context must be a string or a whole number, of at most 256 bytes"},
		{serving.Doubles, `{"input":[1],"context":["a"]}`, "context must be a string or a whole number, of at most 256 bytes"},
		{serving.Doubles, `{"input":[1],"context":1e2}`, "context must be a string or a whole number, of at most 256 bytes"},
		{serving.Doubles, `{"input":[1],"explain":"yes"}`, "explain must be true or false, and is a string"},
		{serving.Doubles, `{"input":[1],"explain":null}`, "explain must be true or false, and is null"},

		// broken JSON, also where something else is wrong before the break
		{serving.Doubles, `{"input":[NaN]}`, "the body is not JSON: invalid value, at byte 10, as JSON has neither NaN nor Infinity"},
		{serving.Doubles, `{"input":[-Infinity]}`, "the body is not JSON: invalid value, at byte 10, as JSON has neither NaN nor Infinity"},
		{serving.Doubles, `{"input":[1 2]}`, "the body is not JSON: missing a comma or ] after an array element, at byte 12"},
		{serving.Doubles, `{"input":[1,]}`, "the body is not JSON: invalid value, at byte 12"},
		{serving.Doubles, `{"input":[1`, "the body is not JSON: missing a comma or ] after an array element, at byte 11"},
		{serving.Doubles, `{"input":[01]}`, "the body is not JSON: a number must not begin with 0, at byte 11"},
		{serving.Doubles, `{"input":[1.]}`, "the body is not JSON: missing digits after the point of a number, at byte 12"},
		{serving.Doubles, `{"input":[1e]}`, "the body is not JSON: missing digits in the exponent of a number, at byte 12"},
		{serving.Doubles, `{"input":["a"}`, "the body is not JSON: missing a comma or ] after an array element, at byte 13"},
		{serving.Doubles, `{"input":[1];}`, "the body is not JSON: missing a comma or } after an object member, at byte 12"},
		{serving.Doubles, `{input:[1]}`, "the body is not JSON: missing the name of a member, in double quotes, at byte 1"},
		{serving.Doubles, `{"input" [1]}`, "the body is not JSON: missing a colon after the name of a member, at byte 9"},
		{serving.Doubles, `{"input":[1],"x":tru}`, "the body is not JSON: invalid value, at byte 17"},
		{serving.Doubles, `[1`, "the body is not JSON: missing a comma or ] after an array element, at byte 2"},
		{serving.Strings, `{"input":"a`, "the body is not JSON: missing a closing quotation mark in string, at byte 9"},
		{serving.Strings, `{"input":"a\`, "the body is not JSON: missing a closing quotation mark in string, at byte 9"},
		{serving.Strings, `{"input":"\x41"}`, "the body is not JSON: invalid escape character in string, at byte 10"},
		{serving.Strings, `{"input":"\u00g0"}`, "the body is not JSON: incorrect hex digit after \\u escape in string, at byte 10"},
		{serving.Strings, "{\"input\":\"a\nb\"}", "the body is not JSON: invalid encoding in string: control characters must be escaped, at byte 11"},
		{serving.Strings, "{\"input\":\"a\xffb\"}", "the body is not JSON: invalid encoding in string: text must be UTF-8, at byte 10"},
		{serving.Strings, "{\"input\":\"\xed\xa0\x80\"}", "the body is not JSON: invalid encoding in string: text must be UTF-8, at byte 10"},
	} {
		wantError(t, test.t, test.body, test.detail)
	}
	for body, came := range map[string]string{`[1]`: "an array", `1`: "a number", `null`: "null", `"input"`: "a string"} {
		wantError(t, serving.Doubles, body, `the body must be an object, such as {"input": [1.5, 2]}, and is `+came)
	}
}

func wantError(t *testing.T, inputType serving.InputType, body, cause string) {
	t.Helper()
	got, err := codec.DecodePredict([]byte(body), takes(inputType), maxBatch)
	refusal, ok := errors.AsType[*codec.Error](err)
	if !ok || refusal.Cause != cause {
		t.Errorf("%s as %v:\n got %v\nwant %s", body, inputType, err, cause)
	}
	if !reflect.DeepEqual(got, codec.PredictRequest{}) {
		t.Errorf("%s as %v: returned %v beside the error", body, inputType, got)
	}
}

func TestDepthIsBounded(t *testing.T) {
	nested := func(levels int) []byte {
		return []byte(`{"x":` + strings.Repeat(`{"a":[`, levels/2) + strings.Repeat(`]}`, levels/2) + `,"input":[1],"strict":false}`)
	}
	if _, err := codec.DecodePredict(nested(126), takes(serving.Doubles), maxBatch); err != nil {
		t.Errorf("126 levels below the top: %v", err)
	}
	_, err := codec.DecodePredict(nested(128), takes(serving.Doubles), maxBatch)
	if err == nil || !strings.Contains(err.Error(), "nested deeper than 128 levels") {
		t.Errorf("128 levels below the top: %v", err)
	}
	deep := []byte(`{"x":` + strings.Repeat("[", 1<<20))
	if _, err := codec.DecodePredict(deep, takes(serving.Doubles), maxBatch); err == nil {
		t.Error("a million brackets were accepted")
	}
}

// What is decoded must survive the body, which the HTTP server overwrites.
func TestDecodedMemoryIsOwned(t *testing.T) {
	for _, test := range []struct {
		t    serving.InputType
		body string
	}{
		{serving.Doubles, `{"input":[1.5,2],"version":"v7","uid":"ann","salt":12}`},
		{serving.Strings, `{"input":"plain","version":"v7","uid":12,"salt":"s\n"}`},
		{serving.Strings, `{"input_batch":["plain","esc\naped"],"version":"\u0076"}`},
		{serving.Bytes, `{"input_batch":["QUJD","\/\/\/\/"]}`},
	} {
		body := []byte(test.body)
		got, err := codec.DecodePredict(body, takes(test.t), maxBatch)
		require.NoError(t, err)
		want, _ := codec.DecodePredict([]byte(test.body), takes(test.t), maxBatch)
		for i := range body {
			body[i] = 'X'
		}
		if !reflect.DeepEqual(got, want) {
			t.Errorf("%s: changed with the body to %v", test.body, got)
		}
	}
}

func TestDecodeAllocatesOnlyTheInput(t *testing.T) {
	for _, test := range []struct {
		t    serving.InputType
		body string
	}{
		{serving.Doubles, `{"uid":0,"input":[0.8444218515250481,0.13436424411240122,1e-300,5e-324]}`},
		{serving.Floats, `{"input":[0.00392156862745098,1e-30,2]}`},
		{serving.Ints, `{"input":[1,-2,3]}`},
		{serving.Strings, `{"input":"plain"}`},
		{serving.Bytes, `{"input":"QUJDRA=="}`},
	} {
		body := []byte(test.body)
		app := takes(test.t)
		allocs := testing.AllocsPerRun(100, func() {
			if _, err := codec.DecodePredict(body, app, maxBatch); err != nil {
				t.Fatal(err)
			}
		})
		if allocs != 1 {
			t.Errorf("%s: %v allocations", test.body, allocs)
		}
	}
}

// A body must not make us take memory out of proportion to its length.
func TestMemoryIsInProportionToTheBody(t *testing.T) {
	for _, body := range []string{
		`{"input":[` + strings.Repeat(",", 1<<20),
		`{"input":[1` + strings.Repeat(",1", 1<<19) + `]}`,
		`{"input_batch":[[1],` + strings.Repeat(",", 1<<20),
	} {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		_, _ = codec.DecodePredict([]byte(body), takes(serving.Doubles), 1<<20)
		runtime.ReadMemStats(&after)
		if got, limit := after.TotalAlloc-before.TotalAlloc, uint64(6*len(body)); got > limit {
			t.Errorf("%.20s...: %d bytes allocated for a body of %d", body, got, len(body))
		}
	}
}

// takes is an app that takes inputs of a type.
func takes(t serving.InputType) *serving.App { return &serving.App{InputType: t} }
