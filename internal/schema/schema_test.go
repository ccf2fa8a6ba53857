package schema

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/pelletier/go-toml/v2"
)

type micros time.Duration

func (d micros) Std() time.Duration { return time.Duration(d) }

type colour string

func (c *colour) UnmarshalText(b []byte) error {
	*c = colour(strings.ToUpper(string(b)))
	if *c != "RED" {
		return errColour
	}
	return nil
}

type colourError string

func (e colourError) Error() string { return string(e) }

const errColour = colourError("the only colour is red")

type box struct {
	Least int     `json:"least" min:"1" default:"3"`
	Share float64 `json:"share,omitempty"`
}

type named struct {
	Name string `json:"name" required:"yes" toml:"title"`
}

type thing struct {
	named
	Colour  colour             `json:"colour"`
	Wait    micros             `json:"wait_micros" default:"20"`
	Count   int                `json:"count" min:"-1"`
	On      bool               `json:"on"`
	Words   []string           `json:"words"`
	Numbers []int              `json:"numbers"`
	Env     map[string]string  `json:"env"`
	Shares  map[string]float64 `json:"shares"`
	Box     *box               `json:"box"`
	Boxes   []box              `json:"boxes"`
	Kind    string             `json:"kind" enum:"a b"`
	Text    string             `json:"text" accept:"integer boolean float"`
	Raw     json.RawMessage    `json:"raw"`
	Hidden  string
	Other   *thing `json:"other"`
}

// decode reads a text, and returns what is wrong, a line each.
func decode(d Decoder, text string) (got thing, wrong string) {
	var tree any
	if d.Syntax == TOML {
		table := map[string]any{}
		if err := toml.Unmarshal([]byte(text), &table); err != nil {
			return got, err.Error()
		}
		tree = table
	} else {
		var err error
		if tree, err = ParseJSON([]byte(text)); err != nil {
			return got, err.Error()
		}
	}
	var lines []string
	for _, p := range d.Decode("", tree, &got) {
		lines = append(lines, p.Error())
	}
	return got, strings.Join(lines, "\n")
}

func TestDecode(t *testing.T) {
	want := thing{
		named: named{"x"}, Colour: "RED", Wait: micros(7 * time.Microsecond), Count: -1, On: true, Words: []string{"a", "b"}, Numbers: []int{1, 2},
		Env: map[string]string{"A": "1"}, Shares: map[string]float64{"a": 0.5}, Box: &box{Least: 3, Share: 1},
		Boxes: []box{{Least: 5}, {Least: 3}}, Kind: "b", Text: "t", Other: &thing{named: named{"y"}, Wait: micros(20 * time.Microsecond)},
	}
	want.Raw = json.RawMessage(`{"n":123456789012345678}`)
	got, wrong := decode(Decoder{}, "\ufeff"+`{"name": "x", "colour": "red", "wait_micros": 7.0, "count": -1, "on": true, "words": ["a", "b"], "numbers": [1, 2e0],
		"env": {"A": "1"}, "shares": {"a": 0.5}, "box": {"share": 1}, "boxes": [{"least": 5}, {}], "kind": "b", "text": "t", "raw": {"n": 123456789012345678}, "other": {"name": "y"}}`)
	if wrong != "" || !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v, %s", got, wrong)
	}
	got, wrong = decode(Decoder{Syntax: TOML}, "title = 'x'\ncolour = 'red'\nwait_micros = 7\ncount = -1\non = true\nwords = ['a', 'b']\nnumbers = [1, 2]\n"+
		"env = { A = 1 }\nshares = { a = 0.5 }\nbox.share = 1\nboxes = [{ least = 5 }, {}]\nkind = 'b'\ntext = 't'\nraw = { n = 123456789012345678 }\nother.title = 'y'")
	if wrong != "" || !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v, %s", got, wrong)
	}
}

func TestWhatIsWrong(t *testing.T) {
	for text, want := range map[string]string{
		``:                           `the document is empty; send a JSON object`,
		"\xff":                       `the document must be UTF-8`,
		`{"name": }`:                 `the document is not valid JSON: at byte 10: invalid character '}' looking for beginning of value`,
		`{"name": "x"} 1`:            `the document is not valid JSON: at byte 15: invalid character '1' after top-level value`,
		`[]`:                         `the document must be an object, not a list`,
		`{}`:                         `"name" is missing`,
		`{"name": "x", "name": "x"}`: `"name" is given twice`,
		`{"name": "x", "boxes": [{}, {"a":1,"a":2}]}`: `"boxes[1].a" is given twice`,
		`{"name": null}`:                                                      `"name" must not be null; leave it out`,
		`{"name": "x", "colr": "red"}`:                                        `"colr" is unknown: did you mean "colour"?`,
		`{"name": "x", "Name": "x"}`:                                          `"Name" is unknown: did you mean "name"?`,
		`{"name": "x", "box": {"zzzzzz": 1}}`:                                 `"box.zzzzzz" is unknown: use one of least, share`,
		`{"name": "x", "Hidden": "red"}`:                                      `"Hidden" is unknown: use one of name, colour, wait_micros, count, on, words, numbers, env, shares, box, boxes, kind, text, raw, other`,
		`{"name": "x", "colour": "blue"}`:                                     `"colour" is invalid: the only colour is red`,
		`{"name": 5}`:                                                         `"name" must be a string, not 5`,
		`{"name": "x", "count": 1.5}`:                                         `"count" must be a whole number that fits, not 1.5`,
		`{"name": "x", "count": -2}`:                                          `"count" must be at least -1, not -2`,
		`{"name": "x", "wait_micros": 9223372036854775807}`:                   `"wait_micros" is out of range: 9223372036854775807`,
		`{"name": "x", "on": "yes"}`:                                          `"on" must be true or false, not a string`,
		`{"name": "x", "words": {}}`:                                          `"words" must be a list of strings, not an object`,
		`{"name": "x", "words": [1]}`:                                         `"words[0]" must be a string, not 1`,
		`{"name": "x", "env": {"A": 1}}`:                                      `"env.A" must be a string, not 1`,
		`{"name": "x", "kind": "c"}`:                                          `"kind" must be one of a, b, not "c"`,
		`{"name": "x", "other": {}}`:                                          `"other.name" is missing`,
		`{"name": ` + strings.Repeat(`[`, 40) + strings.Repeat(`]`, 40) + `}`: `"name` + strings.Repeat("[0]", 32) + `" is nested too deep: 32 levels are allowed`,
	} {
		if _, got := decode(Decoder{}, text); got != want {
			t.Errorf("%.60s: %s\nwant %s", text, got, want)
		}
	}
	for text, want := range map[string]string{
		"name = 'x'":            `"name" is unknown: use one of title, colour, wait_micros, count, on, words, numbers, env, shares, box, boxes, kind, text, raw, other`,
		"count = 1.0":           `"count" must be an integer, not a float`,
		"on = 1":                `"on" must be a boolean, not an integer`,
		"box = 1":               `"box" must be a table, not an integer`,
		"words = 2026-01-02":    `"words" must be a list of strings, not a date or time`,
		"count = 'a'\non = 'b'": "\"count\" must be an integer, not a string\n\"on\" must be a boolean, not a string",
	} {
		if _, got := decode(Decoder{Syntax: TOML}, text); got != want {
			t.Errorf("%s: %s\nwant %s", text, got, want)
		}
	}
}

// TestPartial documents lack what they do not change, and take away with nulls.
func TestPartial(t *testing.T) {
	if got, wrong := decode(Decoder{Partial: true}, `{"count": 2, "box": null}`); wrong != "" || got.Count != 2 {
		t.Errorf("%+v, %s", got, wrong)
	}
}

// TestSet is called for every value, with its path.
func TestSet(t *testing.T) {
	var paths []string
	d := Decoder{Syntax: TOML, Set: func(path string, f Field, _ reflect.Value) { paths = append(paths, path+"="+f.Key) }}
	if _, wrong := decode(d, "count = 1\nwords = ['a']\nboxes = [{ least = 5 }]\nbox.share = 1"); wrong != "" {
		t.Fatal(wrong)
	}
	want := []string{"box.share=share", "boxes[0].least=least", "count=count", "words=words"}
	if !reflect.DeepEqual(paths, want) {
		t.Errorf("%v", paths)
	}
}

func FuzzParseJSON(f *testing.F) {
	for _, text := range []string{`{}`, `[]`, `{"a": [1, 2.5, "x", null, true]}`, `{"a":1,"a":2}`, `1e400`} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		tree, err := ParseJSON(text)
		if err != nil {
			return
		}
		var into thing
		(&Decoder{}).Decode("", tree, &into)
		if !json.Valid(text) {
			t.Errorf("%q is not JSON", text)
		}
	})
}
