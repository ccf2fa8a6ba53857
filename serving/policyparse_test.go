package serving

import (
	"encoding/json"
	"reflect"
	"testing"

	"github.com/topsail-serving/topsail/test/require"
)

func TestParsePolicyErrors(t *testing.T) {
	for text, want := range map[string]string{
		`{`:                          `policy: the document is not valid JSON: at byte 1: unexpected end of JSON input`,
		`"exp3"`:                     `policy: the document must be an object, not a string`,
		`{"share":null}`:             `policy: "share" must not be null; leave it out`,
		`{"fallback":{"share":"x"}}`: `policy: "fallback.share" must be a number that fits, not a string`,
		`{"gama":1,"kind":"exp3"}`:   `policy: "gama" is unknown: did you mean "gamma"?`,
	} {
		p, err := ParsePolicy([]byte(text))
		if err == nil || err.Error() != want || !reflect.DeepEqual(p, PolicySpec{}) {
			t.Errorf("%s: got %+v, error\n%v\nwant\n%s", text, p, err, want)
		}
	}
}

// FuzzParsePolicy holds that what is read is written and read again as it is, and that
// no policy makes the checks panic.
func FuzzParsePolicy(f *testing.F) {
	full, err := json.Marshal(fullPolicy())
	require.NoError(f, err)
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
		require.NoError(t, err)
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
