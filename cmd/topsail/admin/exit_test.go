package admin

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestExitStatus(t *testing.T) {
	f := newFake(t)
	f.here(t)
	problem := func(status int) {
		f.answers["GET /api/v1/apps/x"] = []answer{{status: status, body: `{"detail": "because"}`}}
	}
	for status, want := range map[int]int{400: 1, 401: 4, 403: 4, 404: 3, 409: 1, 412: 1, 422: 1, 429: 1, 500: 1, 502: 5, 503: 5, 504: 5} {
		problem(status)
		r := f.run(t, "app", "get", "x")
		if r.status != want || !strings.HasPrefix(r.err, "topsail: because") || r.out != "" {
			t.Errorf("%d: %+v", status, r)
		}
	}
	problem(401)
	if r := f.run(t, "app", "get", "x"); r.err != "topsail: because; name the file of a key with --key-file, or set TOPSAIL_API_KEY_FILE\n" {
		t.Errorf("%+v", r)
	}
	// A gateway's error, and one that is none of ours.
	f.answer("POST /x/predict", answer{status: 400, body: `{"error": "Request could not be processed", "cause": "the input must be a vector"}`})
	if r := f.run(t, "predict", "x", "1"); r.status != exitFailed || r.err != "topsail: the input must be a vector\n" {
		t.Errorf("%+v", r)
	}
	f.answers["GET /api/v1/apps/x"] = []answer{{status: 418, body: "<html>"}}
	if r := f.run(t, "app", "get", "x"); r.err != "topsail: the server answers 418 I'm a teapot\n" {
		t.Errorf("%+v", r)
	}
	f.answers["GET /api/v1/apps/x"] = []answer{{status: 200, body: "<html>"}}
	if r := f.run(t, "app", "get", "x"); r.status != exitFailed || !strings.Contains(r.err, "is it the management API of the same release?") {
		t.Errorf("%+v", r)
	}
}

func TestServerIsAway(t *testing.T) {
	f := newFake(t)
	f.here(t)
	nobody := httptest.NewServer(nil)
	nobody.Close()
	t.Setenv(envServer, nobody.URL)
	t.Setenv(envGateway, nobody.URL)
	want := "topsail: " + nobody.URL + " does not answer: connection refused; is `topsail local` running? Name another address with --"
	if r := f.run(t, "app", "list"); r.status != exitAway || r.err != want+"server\n" {
		t.Errorf("%+v", r)
	}
	if r := f.run(t, "predict", "wine", "[1]"); r.status != exitAway || r.err != want+"gateway\n" {
		t.Errorf("%+v", r)
	}
	slow := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }))
	defer slow.Close()
	for _, command := range []string{"app list --timeout 50ms", "logs x --timeout 50ms", "events --timeout 50ms"} {
		root := newRoot()
		root.SetArgs(append(strings.Fields(command), "--server", slow.URL))
		var said strings.Builder
		root.SetErr(&said)
		if status := Exit(root.ExecuteContext(t.Context()), &said); status != exitAway || !strings.Contains(said.String(), "it timed out") {
			t.Errorf("%s: %d %s", command, status, said.String())
		}
	}
}

func TestUsage(t *testing.T) {
	f := newFake(t)
	f.here(t)
	for command, want := range map[string]string{
		"app list x":                                 "see `topsail app list --help`",
		"app frobnicate":                             "unknown command",
		"app get":                                    "accepts 1 arg(s), received 0",
		"app list --nonsense":                        "unknown flag: --nonsense",
		"app list -o xml":                            `output "xml" is unknown: use table, wide or json`,
		"app list --server ftp://x":                  "must be a URL such as",
		"app list --server http://u:p@x":             "must be a URL such as",
		"app list --timeout -1s":                     "--timeout must be a time above 0",
		"app create wine":                            "--input-type doubles",
		"app create a --input-type i --burst 3":      "--burst goes with --limit",
		"app set wine":                               "name the settings to change",
		"app traffic wine --window 1s":               "between 1m and 168h",
		"version get wine":                           "MODEL:VERSION",
		"version get m:1 m:2":                        "name one version only",
		"version scale m:1":                          "give either a COUNT",
		"version scale m:1 2 --max 3":                "give either a COUNT",
		"version scale m:1 1001":                     "use 0 to 1000",
		"version scale m:1 --min 3 --max 2":          "0 ≤ min ≤ max",
		"version pin m:1":                            "give either a COUNT or --pause",
		"version pin m:1 1 --for -1s":                "--for must be a time above 0",
		"version create m:1 --secret SECRET":         "--secret takes NAME=VALUE",
		"version create m:1 --artifact https://h/w":  "--artifact takes CHECKSUM@URL",
		"version create m:1 --env SECRET":            "--env takes NAME=VALUE",
		"policy set wine":                            "give either options such as",
		"policy set wine exp3":                       "write OPTION=VALUE",
		"policy set wine gama=1":                     `option "gama" is unknown`,
		"policy set wine kind=exp3 share.x=1":        "share has no members",
		"policy set wine costs=1":                    "costs has members: write costs.NAME=VALUE",
		"policy set wine kind=exp3 most=x":           "most: must be a whole number",
		"policy set wine kind=exp3 share=inf":        "share: must be a number",
		"policy set wine kind=exp3 sticky=2":         "sticky: must be true or false",
		"policy set wine kind=exp3 costs.a=x":        "must be a number",
		"key create shop":                            "name the role of the key",
		"key create shop --role query --expires -1h": "--expires must be a time above 0",
		"decision list -n 0":                         "--lines must be between 1 and 1000",
		"audit -n -1":                                "--lines must be at least 0",
		"events --topic nothing":                     `topic "nothing" is unknown`,
		"logs wine-forest -n 10001":                  "--lines must be between 0 and 10000",
		"artifact pull x":                            "digest",
		"deploy m":                                   "name what to deploy",
		"deploy M --bundle x":                        "model name",
		"predict wine [1":                            "begins like JSON but is not valid JSON",
		"predict wine 1 --batch":                     "--batch takes a list",
		"predict wine [1] --slo -1s":                 "--slo must be a time above 0",
		"feedback wine --label 1":                    "--query-id or --input",
		"feedback wine --query-id 1":                 "either --label or --reward",
		"apply":                                      "name the configuration file",
	} {
		r := f.run(t, strings.Fields(command)...)
		if strings.Contains(command, "--timeout") {
			root := newRoot()
			root.SetArgs(strings.Fields(command))
			var said strings.Builder
			root.SetErr(&said)
			r.status, r.err = Exit(root.ExecuteContext(t.Context()), &said), said.String()
		}
		if r.status != exitUsage || !strings.Contains(r.err, want) {
			t.Errorf("%s: %d %s", command, r.status, r.err)
		}
		if strings.Contains(r.err, "SECRET") {
			t.Errorf("%s shows a secret", command)
		}
	}
	if sent := f.requests(); len(sent) > 0 {
		t.Errorf("a command that is written wrong sends %+v", sent)
	}
}

func TestNamesStayInTheirPlace(t *testing.T) {
	f := newFake(t)
	f.here(t)
	for _, name := range []string{"..", ".", "a/../../b", "%2e%2e", "a b?x=1#y", "ä"} {
		f.asked = nil
		f.run(t, "app", "get", name)
		for _, sent := range f.asked {
			if path, _, _ := strings.Cut(strings.TrimPrefix(sent.what, "GET "), "?"); strings.Count(path, "/") != 4 || !strings.HasPrefix(path, "/api/v1/apps/") || strings.Contains(sent.what, "?") {
				t.Errorf("%q asks for %s", name, sent.what)
			}
		}
		if dots := strings.Trim(name, ".") == ""; dots == (len(f.asked) > 0) {
			t.Errorf("%q asks %d times", name, len(f.asked))
		}
	}
}

func TestKeys(t *testing.T) {
	f := newFake(t)
	f.here(t)
	dir := t.TempDir()
	write := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	shown := func(args ...string) string {
		f.asked = nil
		if r := f.run(t, append([]string{"app", "get", "wine"}, args...)...); r.status != 0 {
			t.Fatalf("%+v", r)
		}
		return f.asked[0].header.Get("X-Api-Key")
	}
	if got := shown(); got != "" {
		t.Errorf("without a key %q is shown", got)
	}
	t.Setenv(envKeyFile, write("env.key", "topsail_env_file\n"))
	if got := shown(); got != "topsail_env_file" {
		t.Errorf("%q is shown", got)
	}
	t.Setenv(envKey, "topsail_env")
	if got := shown(); got != "topsail_env" {
		t.Errorf("%q is shown", got)
	}
	if got := shown("--key-file", write("a.key", "  topsail_file\n\n")); got != "topsail_file" {
		t.Errorf("%q is shown", got)
	}
	for name, text := range map[string]string{"empty": "\n", "two": "SECRET1\nSECRET2", "large": strings.Repeat("SECRET", 1000), "odd": "SECRET\x00"} {
		r := f.run(t, "app", "get", "wine", "--key-file", write(name, text))
		if r.status != exitFailed || !strings.Contains(r.err, "must hold one key and nothing else") || strings.Contains(r.err, "SECRET") {
			t.Errorf("%s: %+v", name, r)
		}
	}
	if r := f.run(t, "app", "get", "wine", "--key-file", filepath.Join(dir, "none")); r.status != exitFailed || !strings.Contains(r.err, "no such file") {
		t.Errorf("%+v", r)
	}
}

func TestExitSaysWhatItMeans(t *testing.T) {
	for _, test := range []struct {
		err  error
		want int
		said string
	}{
		{nil, 0, ""},
		{pending{}, exitUsage, ""},
		{errors.New("no"), 1, "topsail: no\n"},
		{fmt.Errorf("a: %w", context.Canceled), 1, "topsail: interrupted\n"},
		{context.DeadlineExceeded, exitAway, "topsail: context deadline exceeded\n"},
		{errors.New("a\x1b[31mb\nc"), 1, "topsail: a?[31mb\nc\n"},
	} {
		var said strings.Builder
		if got := Exit(test.err, &said); got != test.want || said.String() != test.said {
			t.Errorf("%v: %d %q", test.err, got, said.String())
		}
	}
}
