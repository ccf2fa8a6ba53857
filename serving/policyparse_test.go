package serving

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"
)

func TestParsePolicyErrors(t *testing.T) {
	for text, want := range map[string]string{
		``:                               `policy: unexpected end of JSON input`,
		`{`:                              `policy: unexpected end of JSON input`,
		`{} {}`:                          `policy: invalid character '{' after top-level value`,
		`"exp3"`:                         `policy: it must be an object, not string`,
		`[]`:                             `policy: it must be an object, not array`,
		`{"kind":1}`:                     `policy: kind must be a string, not number`,
		`{"share":"x"}`:                  `policy: share must be a number, not string`,
		`{"share":null,"most":1.5}`:      `policy: most must be a whole number, not number 1.5`,
		`{"most":1e30}`:                  `policy: most must be a whole number, not number 1e30`,
		`{"sticky":"yes"}`:               `policy: sticky must be true or false, not string`,
		`{"models":"m"}`:                 `policy: models must be a list, not string`,
		`{"models":["m",1]}`:             `policy: models must be a string, not number`,
		`{"costs":[1]}`:                  `policy: costs must be an object, not array`,
		`{"fallback":"vote"}`:            `policy: fallback must be an object, not string`,
		`{"fallback":{"share":"x"}}`:     `policy: fallback.share must be a number, not string`,
		`{"gama":1,"kind":"exp3"}`:       `policy: option "gama" is unknown: "exp3" has models, scope, gamma, eta, mixing, kind, loss, scale, costs, record_seconds`,
		`{"Kind":"exp3"}`:                `policy: option "Kind" is unknown: "exp3" has models, scope, gamma, eta, mixing, kind, loss, scale, costs, record_seconds`,
		`{"fallback":{"x":1}}`:           `policy: fallback: option "x" is unknown: "single" has model, kind, loss, scale, costs, record_seconds`,
		`{"kind":"exp5","x":1,"loss":2}`: `policy: loss must be a string, not number`,
	} {
		p, err := ParsePolicy([]byte(text))
		if err == nil || err.Error() != want || !reflect.DeepEqual(p, PolicySpec{}) {
			t.Errorf("%s: got %+v, error\n%v\nwant\n%s", text, p, err, want)
		}
	}
	_, err := ParsePolicy([]byte(`{"kind":"exp5","x":1}`))
	if err == nil || !strings.HasPrefix(err.Error(), `policy: option "x" is unknown: use kind, model, models, `) {
		t.Errorf("an unknown option of an unknown kind: %v", err)
	}
}

// FuzzParsePolicy holds that what is read is written and read again as it is, and that
// no policy makes the checks panic.
func FuzzParsePolicy(f *testing.F) {
	full, err := json.Marshal(fullPolicy())
	if err != nil {
		f.Fatal(err)
	}
	f.Add(full)
	for _, text := range []string{`{}`, `null`, `{"kind":"exp3","gamma":0.1}`, `{"fallback":{"fallback":{"kind":"custom"}}}`, `{"models":[],"costs":{"":1}}`, `{"share":-0}`} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		p, err := ParsePolicy(text)
		if err != nil {
			return
		}
		written, err := json.Marshal(p)
		if err != nil {
			t.Fatal(err)
		}
		again, err := ParsePolicy(written)
		if err != nil || again.String() != p.String() {
			t.Fatalf("%s has become %s, error %v", p.String(), again.String(), err)
		}
		a := goodApp()
		a.Policy = p
		if err := a.Check(); err == nil && p.Fallback != nil && p.Fallback.Learns() {
			t.Fatalf("%s is accepted with a fallback that learns", p.String())
		}
		_ = a.CheckLinks()
		_ = a.CheckVersions(func(ModelID) bool { return false })
	})
}
