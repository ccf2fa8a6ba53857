package admin

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/spf13/cobra"

	"github.com/topsail-serving/topsail/test/require"
)

// fake is a server that knows answers to some requests, by method, path and query, and
// remembers what it was asked.
type fake struct {
	*httptest.Server
	mu      sync.Mutex
	answers map[string][]answer // several: one after the other, the last forever
	asked   []asked
}

type answer struct {
	status int
	body   string
	header map[string]string
	serve  http.HandlerFunc // instead
}

type asked struct {
	what, body string
	header     http.Header
}

// newFake knows what testdata/answers.json has.
func newFake(t testing.TB) *fake {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("testdata", "answers.json"))
	require.NoError(t, err)
	known := map[string]json.RawMessage{}
	require.NoError(t, json.Unmarshal(times(text, time.Now()), &known))
	f := &fake{answers: map[string][]answer{}}
	for what, body := range known {
		f.answer(what, answer{status: 200, body: string(body)})
	}
	f.Server = httptest.NewServer(f)
	t.Cleanup(f.Close)
	return f
}

var relative = regexp.MustCompile(`(AGO|IN)\(([0-9a-z]+)\)`)

// times puts moments before and after now into a text.
func times(text []byte, now time.Time) []byte {
	return relative.ReplaceAllFunc(text, func(found []byte) []byte {
		parts := relative.FindSubmatch(found)
		d, _ := time.ParseDuration(string(parts[2]))
		if string(parts[1]) == "AGO" {
			d = -d
		}
		return []byte(now.Add(d).UTC().Format(time.RFC3339))
	})
}

// answer adds an answer to a request such as "GET /api/v1/apps?limit=1000".
func (f *fake) answer(what string, a ...answer) { f.answers[what] = append(f.answers[what], a...) }

func (f *fake) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return
	}
	what := r.Method + " " + r.URL.RequestURI()
	f.mu.Lock()
	f.asked = append(f.asked, asked{what, string(body), r.Header.Clone()})
	all := f.answers[what]
	if len(all) > 1 {
		f.answers[what] = all[1:]
	}
	f.mu.Unlock()
	if len(all) == 0 {
		w.Header().Set("Content-Type", "application/problem+json")
		w.WriteHeader(http.StatusNotFound)
		_, _ = io.WriteString(w, `{"type": "about:blank", "title": "Not Found", "status": 404, "detail": "`+what+` does not exist", "code": "not_found"}`)
		return
	}
	if all[0].serve != nil {
		all[0].serve(w, r)
		return
	}
	for name, value := range all[0].header {
		w.Header().Set(name, value)
	}
	w.WriteHeader(all[0].status)
	_, _ = io.WriteString(w, all[0].body)
}

// requests are what was asked for with a method other than GET.
func (f *fake) requests() (all []asked) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, one := range f.asked {
		if !strings.HasPrefix(one.what, "GET ") {
			all = append(all, one)
		}
	}
	return all
}

// result is what a command wrote and exited with.
type result struct {
	out, err string
	status   int
}

// run runs a command against the server, with these lines on standard input.
func (f *fake) run(t testing.TB, args ...string) result {
	t.Helper()
	return f.runWith(t.Context(), t, "", args...)
}

func (f *fake) runWith(ctx context.Context, t testing.TB, in string, args ...string) result {
	t.Helper()
	var out, said bytes.Buffer
	root := newRoot()
	at := slices.Index(args, "--")
	if at < 0 {
		at = len(args)
	}
	root.SetArgs(slices.Insert(slices.Clone(args), at, "--timeout", "5s"))
	root.SetIn(strings.NewReader(in))
	root.SetOut(&out)
	root.SetErr(&said)
	err := root.ExecuteContext(ctx)
	status := Exit(err, &said)
	return result{out.String(), said.String(), status}
}

func newRoot() *cobra.Command {
	root := &cobra.Command{Use: "topsail", SilenceUsage: true, SilenceErrors: true}
	AddTo(root)
	stream := &cobra.Command{Use: "stream"}
	stream.AddCommand(StreamCommands()...)
	root.AddCommand(ApplyCommand(), stream)
	return root
}

// here makes commands call the server.
func (f *fake) here(t *testing.T) {
	t.Setenv(envServer, f.URL)
	t.Setenv(envGateway, f.URL)
	t.Setenv(envKey, "")
	t.Setenv("GIT_DIR", os.DevNull) // no commit is checked out
	t.Setenv(envKeyFile, "")
}

func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name+".golden")
	want, err := os.ReadFile(path)
	require.NoError(t, err)
	if got != string(want) {
		t.Errorf("%s: got\n%s\nwant\n%s", name, got, want)
	}
}
