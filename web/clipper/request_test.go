package clipper

import (
	"encoding/json"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"
)

func TestParseErrors(t *testing.T) {
	all := keys{{"s", isText}, {"l", isTexts}, {"i", isInt}, {"b", isBool}, {"t", isInputType}}
	for body, want := range map[string]string{
		"":                               "JSON parse error: The document is empty. (offset 0)\n",
		" \n":                            "JSON parse error: The document is empty. (offset 2)\n",
		"{} x":                           "JSON parse error: The document root must not be followed by other values. (offset 3)\n",
		"{,}":                            "JSON parse error: Missing a name for object member. (offset 1)\n",
		`{"s" 1}`:                        "JSON parse error: Missing a colon after a name of object member. (offset 5)\n",
		`{"s":1 "l"}`:                    "JSON parse error: Missing a comma or } after an object member. (offset 7)\n",
		`{"l":[1 2]}`:                    "JSON parse error: Missing a comma or ] after an array element. (offset 8)\n",
		`{"s":NaN}`:                      "JSON parse error: Invalid value. (offset 5)\n",
		`{"s":"\q"}`:                     "JSON parse error: Invalid escape character in string. (offset 7)\n",
		`{"s":"\u00g0"}`:                 "JSON parse error: Incorrect hex digit after \\u escape in string. (offset 10)\n",
		"{\"s\":\"a\nb\"}":               "JSON parse error: Invalid encoding in string. (offset 7)\n",
		"{\"s\":\"\xff\"}":               "JSON parse error: Invalid encoding in string. (offset 9)\n",
		`{"s":`:                          "JSON parse error: Invalid value. (offset 5)\n",
		`[1]`:                            "Can only get key-value pair from an object",
		` "s"`:                           "Can only get key-value pair from an object",
		`null`:                           "Can only get key-value pair from an object",
		`{}`:                             "JSON object does not have required key: s",
		`{"S":"x"}`:                      "JSON object does not have required key: s",
		`{"s":null}`:                     "Type mismatch! JSON key s expected type Stringbut found type Null",
		`{"s":true}`:                     "Type mismatch! JSON key s expected type Stringbut found type True",
		`{"s":false,"s":""}`:             "Type mismatch! JSON key s expected type Stringbut found type False",
		`{"s":"","l":{}}`:                "Type mismatch! JSON key l expected type Arraybut found type Object",
		`{"s":"","l":["",1]}`:            "Array input of type Number is not of type string",
		`{"s":"","l":[],"i":"1"}`:        "Type mismatch! JSON key i expected type Numberbut found type String",
		`{"s":"","l":[],"i":1.0}`:        "PredictionData of type Number is not of type int",
		`{"s":"","l":[],"i":1e2}`:        "PredictionData of type Number is not of type int",
		`{"s":"","l":[],"i":2147483648}`: "PredictionData of type Number is not of type int",
		`{"s":"","l":[],"i":-2147483648,"b":"x"}`: "Type mismatch! JSON key b expected type bool but found type String",
		`{"s":"","l":[],"i":1,"b":true,"t":[]}`:   "Type mismatch! JSON key t expected type Stringbut found type Array",
	} {
		if _, err := parse([]byte(body), all); err == nil || err.Error() != want {
			t.Errorf("%q:\n got %v\nwant %s", body, err, want)
		}
	}
}

func TestParse(t *testing.T) {
	got, err := parse([]byte(`{"s":"é\n","s":2,"l":["a","b"],"i":-7,"more":{"s":[]},"b":false}`), keys{{"s", isText}, {"l", isTexts}, {"i", isInt}, {"b", isBool}})
	want := request{"s": "é\n", "l": []string{"a", "b"}, "i": -7, "b": false}
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("got %v, %v", got, err)
	}
}

// TestEveryRequestSaysWhatItNeeds sends each an empty object.
func TestEveryRequestSaysWhatItNeeds(t *testing.T) {
	a := &admin{}
	h := handler(having(t), nobody)
	if n := len(a.operations()); n != 15 {
		t.Errorf("%d requests", n)
	}
	for name, op := range a.operations() {
		want := "Error parsing JSON: JSON object does not have required key: " + op.keys[0].name + ". Expected JSON schema: " + op.keys.schema()
		if status, text := post(h, name, "{}"); status != 400 || text != want {
			t.Errorf("%s: %d %s", name, status, text)
		}
	}
	const want = "Error parsing JSON: JSON parse error: The document is empty. (offset 0)\n. Expected JSON schema: \n  {\n" +
		"   \"name\" := string,\n   \"input_type\" := \"integers\" | \"bytes\" | \"floats\" | \"doubles\" | \"strings\",\n" +
		"   \"default_output\" := string,\n   \"latency_slo_micros\" := int\n  }\n"
	if _, text := post(h, "add_app", ""); text != want {
		t.Errorf("add_app: %s", text)
	}
}

func FuzzObject(f *testing.F) {
	for _, seed := range []string{"", "{}", newModel, `{"a":1,"a":2}`, `[{}]`, `{"a":"\ud800"}`, strings.Repeat("[", 200), `{"a":{"b":[1e9,null]}} `} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		members, err := object(body)
		var whole map[string]json.RawMessage
		valid := json.Unmarshal(body, &whole) == nil && whole != nil
		if valid != (err == nil) && json.Valid(body) && string(body) == strings.ToValidUTF8(string(body), "") {
			t.Fatalf("%q: %v", body, err)
		}
		if err != nil {
			return
		}
		if !maps.EqualFunc(members, whole, func(a, b json.RawMessage) bool { return json.Valid(a) && json.Valid(b) }) {
			t.Fatalf("%q: %v, not %v", body, slices.Collect(maps.Keys(members)), slices.Collect(maps.Keys(whole)))
		}
		for name, value := range members {
			for _, want := range []kind{isText, isTexts, isInt, isBool} {
				if v, err := read(name, want, value); err == nil && v == nil {
					t.Fatalf("%s as %s is nothing", value, want)
				}
			}
		}
	})
}
