package access

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/topsail-serving/topsail/test/require"
)

const (
	aliceKey = "alice-0123456789abcdef"
	bobKey   = "bob-0123456789abcdef+/="
)

func newKeys(t testing.TB, content string) *Keys {
	t.Helper()
	keys, err := KeysFile(newFolder(t).write("keys", content), nil)
	require.NoError(t, err)
	return keys
}

func TestWhoseKeyItIs(t *testing.T) {
	keys := newKeys(t, "# people\n\n alice:"+aliceKey+" \r\n"+bobKey+"\nalice:a-second-key-of-hers\n")
	long := strings.Repeat("x", 10<<10)
	for _, tt := range []struct {
		apiKey, authorization string
		name                  string // "": refused
	}{
		{aliceKey, "", "alice"},
		{"", "Bearer " + aliceKey, "alice"},
		{"", "bearer   " + aliceKey, "alice"},
		{"a-second-key-of-hers", "", "alice"},
		{"", "Bearer " + bobKey, "line-4"},
		{aliceKey, "Basic dXNlcjpwYXNz", "alice"}, // the other one is for a proxy
		{"wrong-wrong-wrong-wrong", "Bearer " + aliceKey, ""},
		{"", "", ""},
		{"", aliceKey, ""},
		{"", "Bearer", ""},
		{"", "Bearer ", ""},
		{"", "Bearer" + aliceKey, ""},
		{"", "Basic " + aliceKey, ""},
		{"alice:" + aliceKey, "", ""},
		{"# people", "", ""},
		{aliceKey[:len(aliceKey)-1], "", ""},
		{aliceKey + " ", "", ""},
		{strings.ToUpper(aliceKey), "", ""},
		{long, "", ""},
		{"", "Bearer " + long, ""},
		{"", long, ""},
		{strings.Repeat("\x00", 32), "\xff\xfe", ""},
	} {
		if name, ok := keys.Check([]byte(tt.apiKey), []byte(tt.authorization)); name != tt.name || ok != (tt.name != "") {
			t.Errorf("Check(%.40q, %.40q) = %q, %v, want %q", tt.apiKey, tt.authorization, name, ok, tt.name)
		}
	}
	var open *Keys
	if name, ok := open.Check(nil, nil); name != "" || !ok {
		t.Error("without keys nobody gets in")
	}
}

func TestTheKeysThemselvesAreNotKept(t *testing.T) {
	keys := newKeys(t, "alice:"+aliceKey)
	if shown := fmt.Sprintf("%s%+v", keys.file.get(), keys.file.get()); strings.Contains(shown, "alice-0") {
		t.Errorf("kept: %s", shown)
	}
	plain, other := sha256.Sum256([]byte(aliceKey)), newKeys(t, "alice:"+aliceKey)
	if mine := keys.salt.digest([]byte(aliceKey)); mine == plain || mine == other.salt.digest([]byte(aliceKey)) || keys.file.get()[mine] != "alice" {
		t.Error("what is kept is not a digest of its own")
	}
}

func TestKeysFollowTheirFile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log, text := newLog()
		f := newFolder(t)
		keys, err := KeysFile(f.write("keys", aliceKey), log)
		require.NoError(t, err)
		known := func(alice, bob bool) {
			t.Helper()
			time.Sleep(time.Second)
			_, a := keys.Check([]byte(aliceKey), nil)
			_, b := keys.Check([]byte(bobKey), nil)
			if a != alice || b != bob {
				t.Errorf("alice %v, bob %v", a, b)
			}
		}
		known(true, false)
		f.write("keys", aliceKey+"\n"+bobKey)
		known(true, true)
		f.write("keys", bobKey)
		known(false, true)
		f.write("keys", "short-"+bobKey[:5])
		known(false, true)
		known(false, true)
		if complaints := text.String(); strings.Count(complaints, "level=ERROR") != 1 || strings.Contains(complaints, bobKey[:5]) {
			t.Errorf("the fault is to be logged once, without keys:\n%s", complaints)
		}
	})
}

func TestKeyFilesThatCannotBeUsed(t *testing.T) {
	for content, says := range map[string]string{
		"":                                    "contains no key",
		"# none\n\n":                          "contains no key",
		"secret":                              "line 1: a key must have 16 to 256",
		"\n\nname:" + "secret":                "line 3: a key must have 16 to 256",
		"n:" + strings.Repeat("secret", 50):   "line 1: a key must have 16 to 256",
		":secret-0123456789":                  "line 1: the name before the colon",
		"a secret-0123456789":                 "line 1: it has spaces",
		"secret-0123456789 # comment":         "line 1: it has spaces",
		"\ufeffsecret-0123456789":             "line 1: it has spaces or non-ASCII characters",
		"secret-0123456789\x00":               "line 1: it has spaces or non-ASCII",
		"a:secret-012345678\nsecret-01234567": "line 2: a key must have",
		"a:secret-0123456789\n#\nb:secret-0123456789": "line 3 repeats the key of line 1",
	} {
		_, err := new(salt).parse([][]byte{[]byte(content)})
		if err == nil || !strings.Contains(err.Error(), says) || strings.Contains(err.Error(), "secret") {
			t.Errorf("%.60q: %v, want %q and no key", content, err, says)
		}
	}
}

// FuzzKeys holds that no file makes the parser panic, that it keeps what it was
// given and no more, and that its errors quote nothing.
func FuzzKeys(f *testing.F) {
	for _, seed := range []string{"", "#", aliceKey, "a:" + aliceKey + "\n" + bobKey, ":", "a::::::::::::::::::", "\r\n\x00", "a b"} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, content []byte) {
		list, err := new(salt).parse([][]byte{content})
		if err != nil {
			for line := range bytes.FieldsSeq(content) {
				if len(line) >= minKey && strings.Contains(err.Error(), string(line)) {
					t.Fatalf("%q quotes %q", err, line)
				}
			}
			return
		}
		secrets := map[string]string{} // to the names
		number := 0
		for line := range bytes.SplitSeq(content, []byte("\n")) {
			number++
			line = bytes.TrimSpace(line)
			if len(line) == 0 || line[0] == '#' {
				continue
			}
			name, secret, named := strings.Cut(string(line), ":")
			if !named {
				name, secret = fmt.Sprintf("line-%d", number), string(line)
			}
			secrets[secret] = name
		}
		if len(secrets) != len(list) {
			t.Fatalf("%d keys of %d", len(list), len(secrets))
		}
		for secret, name := range secrets {
			if list[new(salt).digest([]byte(secret))] != name {
				t.Fatalf("%q is not found", secret)
			}
		}
	})
}

func TestHandlerAsksForAKey(t *testing.T) {
	next := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { w.Write([]byte("inside")) })
	handler := newKeys(t, aliceKey).Handler(next)
	for _, tt := range []struct {
		header, value string
		status        int
	}{
		{"X-Api-Key", aliceKey, 200}, {"Authorization", "Bearer " + aliceKey, 200},
		{"X-Api-Key", bobKey, 401}, {"Cookie", aliceKey, 401}, {"X-Api-Key", "", 401},
	} {
		w, r := httptest.NewRecorder(), httptest.NewRequest("GET", "/?key="+aliceKey, nil)
		r.Header.Set(tt.header, tt.value)
		handler.ServeHTTP(w, r)
		if w.Code != tt.status || (w.Body.String() == "inside") != (tt.status == 200) {
			t.Errorf("%s: %s: %d %s", tt.header, tt.value, w.Code, w.Body)
		}
		if tt.status == 200 {
			continue
		}
		var answer struct{ Error, Cause string }
		if err := json.Unmarshal(w.Body.Bytes(), &answer); err != nil || answer.Error != Unauthorized || !strings.Contains(answer.Cause, "X-Api-Key") {
			t.Errorf("%s: %v", w.Body, err)
		}
		if got := w.Header().Get("WWW-Authenticate"); got != `Bearer realm="topsail"` || w.Header().Get("Content-Type") != "application/json" {
			t.Errorf("headers: %v", w.Header())
		}
	}
	var open *Keys
	w := httptest.NewRecorder()
	open.Handler(next).ServeHTTP(w, httptest.NewRequest("GET", "/", nil))
	if w.Body.String() != "inside" {
		t.Errorf("without keys: %d %s", w.Code, w.Body)
	}
}

func BenchmarkCheck(b *testing.B) {
	for _, n := range []int{1, 1000} {
		content := &bytes.Buffer{}
		for i := range n {
			fmt.Fprintf(content, "client-%d:%064d\n", i, i)
		}
		keys := newKeys(b, content.String())
		for name, shown := range map[string]string{"known": fmt.Sprintf("Bearer %064d", n/2), "unknown": fmt.Sprintf("Bearer %064d", n)} {
			b.Run(fmt.Sprintf("%s-of-%d", name, n), func(b *testing.B) {
				header := []byte(shown)
				b.ReportAllocs()
				for b.Loop() {
					if _, ok := keys.Check(nil, header); ok != (name == "known") {
						b.Fatal(ok)
					}
				}
			})
		}
	}
}
