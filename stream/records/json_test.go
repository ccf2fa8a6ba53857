package records

import (
	"bytes"
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/topsail-serving/topsail/gateway/codec"
	"github.com/topsail-serving/topsail/serving"
	"github.com/topsail-serving/topsail/stream"
)

var inputTypes = []serving.InputType{serving.Bytes, serving.Ints, serving.Floats, serving.Doubles, serving.Strings}

// FuzzJSONInput holds that a JSON record takes the inputs that the predict API takes, and
// makes the same of them.
func FuzzJSONInput(f *testing.F) {
	for _, seed := range []string{
		`[1, 2.5, -0]`, `[]`, `[ ]`, `[[1]]`, `[1,null]`, `["1"]`, `[1e400]`, `[3.4028236e38]`, `[2147483648]`, `[1e2]`, `[1.0]`, `[ 1 , -2147483648 ]`,
		`"text"`, `""`, `"aGk="`, `"aGk"`, `"aGk\r\n"`, `"=\/"`, `"\ud800"`, `"\ud83c\udfe0"`, `"\udfe0\ud83c"`, `"\\ud83c"`, `"\u00e9é"`, `[true]`, `[1,false]`, `null`, `{}`, `1`, `true`, "\"\xff\"",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if !json.Valid([]byte(text)) || strings.Count(text, "[") > 50 {
			return
		}
		body := fmt.Appendf(nil, `{"uuid": "7", "input": %s}`, text)
		request, err := ParseRequest(body, stream.JSON)
		for _, kind := range inputTypes {
			theirs, refused := codec.DecodePredict(fmt.Appendf(nil, `{"input": %s}`, text), &serving.App{InputType: kind}, 1)
			var ours serving.Input
			err := err
			if err == nil {
				ours, err = request.Input(kind)
			}
			if (err == nil) != (refused == nil) {
				t.Errorf("%s as %v: here %v, at the API %v", text, kind, err, refused)
			}
			if err == nil && !bytes.Equal(ours.Data, theirs.Input.Data) {
				t.Errorf("%s as %v: here %x, at the API %x", text, kind, ours.Data, theirs.Input.Data)
			}
		}
	})
}

// FuzzJSONMessage has both readers read anything.
func FuzzJSONMessage(f *testing.F) {
	for _, seed := range []string{
		`{"uuid": "7", "input": [1]}`, `{"uuid": 7, "input": "x", "uid": 3, "context": "c", "key": "k", "app": "wine", "more": {}}`, `{"uuid": "7", "app": ["a", 7, null], "input": 1}`,
		`{"uuid": null, "input": null}`, `{"uuid": 1.5, "input": 1}`, `{"uuid": {}, "input": 1}`, `{"input": 1`, `[]`, ``, `{"input": 1} x`,
		`{"uuid":"7","query_id":3,"output":1.5,"default":true,"default_explanation":"e","confidence":0.5,"qualifiers":{"a":1,"b":"x","c":{"d":[]}},"missing":["m:1"]}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		if request, err := ParseRequest(b, stream.JSON); err == nil {
			again, err := ParseRequest(request.AppendJSON(nil), stream.JSON)
			if err != nil || !reflect.DeepEqual(again, request) {
				t.Errorf("%s is read as %+v, and that as %+v, %v", b, request, again, err)
			}
		}
		if response, err := ParseResponse(b, stream.JSON); err == nil {
			text := response.AppendJSON(nil)
			again, err := ParseResponse(text, stream.JSON)
			if err != nil || !bytes.Equal(again.AppendJSON(nil), text) {
				t.Errorf("%s is written as %s, and read as %+v, %v", b, text, again, err)
			}
		}
	})
}

func TestJSONRoundTrip(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		request := drawRequest(rt)
		request.Format, request.Data = stream.JSON, []byte(`[1, 2]`)
		if got, err := ParseRequest(request.AppendJSON(nil), stream.JSON); err != nil || !reflect.DeepEqual(got, request) {
			rt.Fatalf("%s came back as %+v, %v", request.AppendJSON(nil), got, err)
		}
		response := drawResponse(rt)
		response.Output = rapid.SampledFrom([][]byte{[]byte("1"), []byte(`"a"`), []byte(`{"a":[1,2]}`)}).Draw(rt, "json")
		for i := range response.Qualifiers {
			response.Qualifiers[i].Value = rapid.SampledFrom([]string{"red", "1.5", "true", `[1,2]`, "", "a \"b\""}).Draw(rt, "value")
		}
		text := response.AppendJSON(nil)
		if got, err := ParseResponse(text, stream.JSON); err != nil || !sameResponse(got, response) || !json.Valid(text) {
			rt.Fatalf("%s came back as %+v, %v", text, got, err)
		}
	})
}

// TestJSONResponse: the members are those of the predict API.
func TestJSONResponse(t *testing.T) {
	sure := 0.75
	r := newResponse("a\"b", "tasting", &serving.Prediction{
		QueryID: 7, Output: []byte(`{"q":1}`), Model: serving.ModelID{Model: "wine", Version: "2"}, Confidence: &sure,
		Qualifiers: []serving.Value{
			{Name: "colour", DType: serving.String, Data: []byte("red")},
			{Name: "margin", DType: serving.Float32, Data: []byte{0, 0, 0x80, 0x3f}},
			{Name: "blob", DType: serving.Opaque, Data: []byte{1}},
		},
		Missing: []serving.ModelID{{Model: "slow", Version: "1"}, {Model: "slow", Version: "2"}},
	}, 1500*time.Microsecond)
	want := `{"uuid":"a\"b","query_id":7,"output":{"q":1},"default":false,"app":"tasting","model":"wine","version":"2","confidence":0.75,` +
		`"qualifiers":{"colour":"red","margin":1.0,"blob":null},"missing":["slow:1","slow:2"],"duration_micros":1500}`
	if got := string(r.AppendJSON(nil)); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	r = newResponse("7", "tasting", &serving.Prediction{QueryID: 8, Output: []byte("-1"), Default: true, Cause: serving.NoReplica, Explanation: "none"}, 0)
	want = `{"uuid":"7","query_id":8,"output":-1,"default":true,"default_explanation":"none","app":"tasting"}`
	if got := string(r.AppendJSON(nil)); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

func TestFormatOf(t *testing.T) {
	for _, one := range []struct {
		contentType, value string
		want               stream.Format
	}{
		{"", `{"uuid": "7"}`, stream.JSON}, {"", "\x0a\x017", stream.Protobuf}, {"", "", stream.Protobuf}, {"", " {}", stream.Protobuf},
		{"application/json; charset=utf-8", "\x0a", stream.JSON}, {"APPLICATION/JSON", "", stream.JSON}, {"application/vnd.wine+json", "", stream.JSON},
		{"application/x-protobuf", "{", stream.Protobuf}, {"application/protobuf", "{", stream.Protobuf},
		{"text/plain", "{", stream.AnyFormat}, {";;", "{", stream.AnyFormat},
	} {
		got, err := stream.FormatOf(one.contentType, []byte(one.value))
		if got != one.want || (err == nil) != (one.want != stream.AnyFormat) {
			t.Errorf("content-type %q of %q: %v, %v", one.contentType, one.value, got, err)
		}
	}
}

func TestDataOfProtobuf(t *testing.T) {
	for _, one := range []struct {
		kind serving.InputType
		data string
		want string // in the error
	}{
		{serving.Strings, "", ""}, {serving.Strings, "é", ""}, {serving.Strings, "\xff", "not UTF-8"},
		{serving.Bytes, "\xff", ""}, {serving.Bytes, "", "is empty"},
		{serving.Ints, "1234", ""}, {serving.Ints, "12345", "of 4 bytes each"}, {serving.Ints, "", "is empty"},
		{serving.Floats, "12345678", ""}, {serving.Doubles, "1234", "of 8 bytes each"}, {serving.Doubles, "12345678", ""},
	} {
		r := Request{Data: []byte(one.data), Format: stream.Protobuf}
		in, err := r.Input(one.kind)
		if (one.want == "") != (err == nil) || err != nil && !strings.Contains(err.Error(), one.want) {
			t.Errorf("%q as %v: %v, want %q", one.data, one.kind, err, one.want)
		}
		if err == nil && (string(in.Data) != one.data || in.Type != one.kind) {
			t.Errorf("%q as %v is %+v", one.data, one.kind, in)
		}
	}
}
