package admin

import (
	"archive/zip"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/topsail-serving/topsail/serving/bundle"
	"github.com/topsail-serving/topsail/test/require"
)

// uploads answers to an upload with the digest of what came, if it is a bundle.
func uploads(t *testing.T) answer {
	return answer{serve: func(w http.ResponseWriter, r *http.Request) {
		w.WriteHeader(http.StatusCreated)
		_, _ = io.WriteString(w, `{"digest": "sha256:`+digest+`", "size": 1, "manifest": {}, "used_by": []}`)
	}}
}

// folder makes a folder of files.
func folder(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		path := filepath.Join(dir, name)
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o700))
		require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	}
	return dir
}

var iris = map[string]string{
	"manifest.json": `{"runtime": "sklearn", "python": "3.11", "entry": "model.pkl", "input_type": "doubles"}`,
	"model.pkl":     "pickled", "code/a.py": "import b\n",
}

func TestDeploy(t *testing.T) {
	f := newFake(t)
	f.here(t)
	f.answer("POST /api/v1/artifacts", uploads(t))
	f.answer("POST /api/v1/models/iris/versions", answer{status: 201, body: `{"model": "iris", "version": "1", "input_type": "doubles", "replicas": 1, "example": "[\"it's\"]"}`})
	f.answer("PUT /api/v1/apps/flowers/links/iris", answer{status: 404, body: `{"detail": "app flowers does not exist"}`})
	f.answer("POST /api/v1/apps", answer{status: 201, body: `{}`})
	const replicas = "GET /api/v1/replicas?limit=1000&model=iris&version=1"
	f.answer(replicas,
		answer{status: 200, body: `{"items": []}`},
		answer{status: 200, body: `{"items": [{"id": "iris-1-0", "state": "starting", "reason": "installs scikit-learn"}]}`},
		answer{status: 200, body: `{"items": [{"id": "iris-1-0", "state": "ready"}]}`})
	r := f.run(t, "deploy", "iris", "--bundle", folder(t, iris), "--app", "flowers", "--slo", "20ms", "--default", "-1", "--replicas", "2")
	if r.status != 0 || r.out != "iris:1 is deployed\n" {
		t.Fatalf("%+v", r)
	}
	for _, want := range []string{
		"bundle sha256:" + digest + " is stored\n", "iris:1 is registered\n", "app flowers is created and linked to iris\n",
		"waiting for a replica of iris:1 (no replica has started)\n", "waiting for a replica of iris:1 (starting: installs scikit-learn)\n",
		"iris-1-0 is ready after ", `topsail predict flowers '["it'\''s"]'`,
	} {
		if !strings.Contains(r.err, want) {
			t.Errorf("it does not say %q:\n%s", want, r.err)
		}
	}
	sent := f.requests()
	if len(sent) != 4 || sent[0].header.Get("Content-Type") != "application/zip" ||
		sent[1].body != `{"bundle":"sha256:`+digest+`","replicas":2,"version":"1"}` ||
		sent[3].body != `{"default_output":"-1","example":"[\"it's\"]","input_type":"doubles","latency_slo_micros":20000,"models":["iris"],"name":"flowers"}` {
		t.Fatalf("it sends %+v", sent)
	}
	b, err := bundle.Open(strings.NewReader(sent[0].body), int64(len(sent[0].body)))
	if err != nil || b.Verify(t.Context()) != nil || len(b.Manifest.Files) != 2 || b.Manifest.Files["code/a.py"].Size != 9 {
		t.Errorf("the bundle: %v %+v", err, b)
	}
}

// An app that has no example gets that of the bundle, if it is short.
func TestDeployGivesTheAppItsExample(t *testing.T) {
	long := `"` + strings.Repeat("x", longestExample) + `"`
	for _, tt := range []struct {
		name, app, example string
		given              bool
	}{
		{"has none", `{"name": "wine"}`, `[1.5, 2]`, true},
		{"has one", `{"name": "wine", "example": "[3]"}`, `[1.5, 2]`, false},
		{"is given none", `{"name": "wine"}`, ``, false},
		{"is given a long one", `{"name": "wine"}`, long, false},
	} {
		f := newFake(t)
		f.here(t)
		example, err := json.Marshal(tt.example)
		require.NoError(t, err)
		f.answer("POST /api/v1/models/m/versions", answer{status: 201, body: `{"version": "1", "input_type": "doubles", "replicas": 0, "example": ` + string(example) + `}`})
		f.answer("PUT /api/v1/apps/wine/links/m", answer{status: 200, body: tt.app})
		f.answer("PATCH /api/v1/apps/wine", answer{status: 200, body: `{}`})
		r := f.run(t, "deploy", "m", "--bundle", "sha256:"+digest, "--app", "wine")
		sent := f.requests()
		given := len(sent) == 3 && sent[2].body == `{"example":"[1.5, 2]"}` && sent[2].header.Get("Content-Type") == "application/merge-patch+json"
		if r.status != 0 || given != tt.given || len(sent) > 3 {
			t.Errorf("%s: %+v %+v", tt.name, r, sent)
		}
	}
}

// A new app takes what the version takes.
func TestDeployGivesTheAppItsSignature(t *testing.T) {
	f := newFake(t)
	f.here(t)
	signature := `{"inputs":[{"name":"x","type":"float32","shape":[-1]}]}`
	f.answer("POST /api/v1/models/m/versions", answer{status: 201, body: `{"version": "1", "input_type": "tensors", "signature": ` + signature + `}`})
	f.answer("POST /api/v1/apps", answer{status: 201, body: `{}`})
	r := f.run(t, "deploy", "m", "--bundle", "sha256:"+digest, "--app", "wine")
	sent := f.requests()
	if last := sent[len(sent)-1].body; r.status != 0 || !strings.Contains(last, `"input_type":"tensors"`) || !strings.Contains(last, `"signature":`+signature) {
		t.Errorf("%+v %s", r, last)
	}
}

func TestDeployCommand(t *testing.T) {
	f := newFake(t)
	f.here(t)
	t.Chdir(t.TempDir())
	here, err := os.Getwd()
	require.NoError(t, err)
	f.answer("POST /api/v1/models/wine-forest/versions?keep_current=true", answer{status: 201, body: `{"version": "3", "input_type": "doubles", "replicas": 1}`})
	f.answer("PUT /api/v1/apps/wine/links/wine-forest", answer{status: 200, body: `{}`})
	f.answer("GET /api/v1/me", answer{status: 200, body: `{"mode": "local"}`}, answer{status: 200, body: `{"mode": "cluster"}`})
	r := f.run(t, "deploy", "wine-forest", "--input-type", "doubles", "--keep-current", "--app", "wine", "--", "python3", "-m", "topsail", "wine:Wine")
	want := `{"command":["python3","-m","topsail","wine:Wine"],"dir":"` + here + `","input_type":"doubles","version":"3"}`
	if sent := f.requests(); r.status != 0 || len(sent) != 2 || sent[0].body != want || !strings.Contains(r.err, "gets replicas when it is current") {
		t.Errorf("%+v %+v", r, sent)
	}
	f.asked = nil
	r = f.run(t, "deploy", "wine-forest", "--keep-current", "--version", "b", "--", "./serve")
	if sent := f.requests(); r.status != 0 || len(sent) != 1 || sent[0].body != `{"command":["./serve"],"version":"b"}` {
		t.Errorf("on a cluster: %+v %+v", r, sent)
	}
}

func TestDeployThatDoesNotBecomeReady(t *testing.T) {
	f := newFake(t)
	f.here(t)
	f.answer("POST /api/v1/models/m/versions", answer{status: 201, body: `{"version": "1", "replicas": 1}`})
	f.answer("GET /api/v1/replicas?limit=1000&model=m&version=1", answer{status: 200, body: `{"items": [{"id": "m", "state": "failed", "reason": "No module named 'x'"}]}`})
	r := f.run(t, "deploy", "m", "--bundle", "sha256:"+digest, "--wait", "100ms")
	if want := "topsail: no replica of m:1 is ready after 100ms (failed: No module named 'x'); Topsail keeps trying: see `topsail logs m:1`\n"; r.status != exitFailed || !strings.HasSuffix(r.err, want) {
		t.Errorf("%+v", r)
	}
	for model, want := range map[string]string{
		`"versions": ["1"], "apps": ["a", "b"]`:                   "topsail app unlink a m && topsail app unlink b m && topsail model delete m",
		`"versions": ["0", "1"], "current": "1", "previous": "0"`: "topsail rollback m && topsail version delete m:1",
		`"versions": ["0", "1"], "current": "0", "apps": ["a"]`:   "topsail version delete m:1",
	} {
		f.answers["GET /api/v1/models/m"] = []answer{{status: 200, body: `{"name": "m", ` + model + `}`}}
		r := f.run(t, "deploy", "m", "--bundle", "sha256:"+digest, "--wait", "10ms")
		if want := "\nm:1 stays registered; to remove it: " + want + "\n"; r.status != exitFailed || !strings.HasSuffix(r.err, want) {
			t.Errorf("%s: %+v", model, r)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	f.answers["GET /api/v1/replicas?limit=1000&model=m&version=1"] = []answer{{serve: func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, `{"items": []}`)
		cancel()
	}}}
	if r := f.runWith(ctx, t, "", "deploy", "m", "--bundle", "sha256:"+digest); r.status != exitFailed || !strings.HasSuffix(r.err, "topsail: interrupted\n") {
		t.Errorf("%+v", r)
	}
}

// A bundle that is a version already stays that one, unless the version is another otherwise;
// and others take numbers meanwhile.
func TestDeployTheSameAgain(t *testing.T) {
	f := newFake(t)
	f.here(t)
	const versions, create = "GET /api/v1/models/m/versions?limit=1000", "POST /api/v1/models/m/versions"
	three := answer{status: 200, body: `{"items": [{"version": "1", "bundle": "sha256:` + digest + `"}, {"version": "2", "bundle": "sha256:` + digest + `"}, {"version": "3", "bundle": "sha256:0"}]}`}
	exists := answer{status: 409, body: `{"status": 409, "detail": "version \"2\" exists with another command", "code": "exists"}`}
	f.answer(versions, three)
	f.answer(create, answer{status: 200, body: `{"version": "2", "replicas": 0}`})
	deploy := []string{"deploy", "m", "--bundle", "sha256:" + digest}
	if r := f.run(t, deploy...); r.status != 0 || r.out != "m:2 is deployed\n" {
		t.Errorf("%+v", r)
	}
	f.answers[create] = []answer{exists, {status: 201, body: `{"version": "4", "replicas": 0}`}}
	if r := f.run(t, deploy...); r.status != 0 || r.out != "m:4 is deployed\n" {
		t.Errorf("with other flags: %+v", r)
	}
	f.answers[versions] = []answer{three, {status: 200, body: `{"items": [{"version": "4", "bundle": "sha256:1"}]}`}}
	f.answers[create] = []answer{exists, exists, {status: 201, body: `{"version": "5", "replicas": 0}`}}
	if r := f.run(t, deploy...); r.status != 0 || r.out != "m:5 is deployed\n" {
		t.Errorf("while others deploy: %+v", r)
	}
}

func TestFoldersThatAreNoBundles(t *testing.T) {
	f := newFake(t)
	f.here(t)
	outside := filepath.Join(t.TempDir(), "secret")
	require.NoError(t, os.WriteFile(outside, []byte("x"), 0o600))
	linked := folder(t, iris)
	require.NoError(t, os.Symlink(outside, filepath.Join(linked, "link")))
	manifestOutside := t.TempDir()
	require.NoError(t, os.Symlink(outside, filepath.Join(manifestOutside, "manifest.json")))
	for dir, want := range map[string]string{
		folder(t, map[string]string{"a": "b"}):                                                  "manifest.json is missing; it says what runs the bundle",
		folder(t, map[string]string{"manifest.json": "{"}):                                      "manifest.json cannot be read",
		folder(t, map[string]string{"manifest.json": `{"runtime": "python", "pyton": "3"}`}):    `unknown field "pyton"`,
		folder(t, map[string]string{"manifest.json": `{"format": 2}`}):                          "has format 2",
		folder(t, map[string]string{"manifest.json": `{"runtime": "cobol", "python": "3.11"}`}): "cannot make a bundle of",
		linked:                           `"link" is a link or a device`,
		manifestOutside:                  "path escapes",
		filepath.Join(linked, "nothing"): "no such file",
		"/dev/null":                      "neither a file nor a folder",
	} {
		if r := f.run(t, "artifact", "push", dir); r.status != exitFailed || !strings.Contains(r.err, want) {
			t.Errorf("%s: %+v", want, r)
		}
	}
	if sent := f.requests(); len(sent) > 0 {
		t.Errorf("it sends %+v", sent)
	}
}

func TestPush(t *testing.T) {
	f := newFake(t)
	f.here(t)
	f.answer("POST /api/v1/artifacts", uploads(t))
	dir := folder(t, iris)
	for range 2 {
		if r := f.run(t, "artifact", "push", dir); r.status != 0 || r.out != "sha256:"+digest+"\n" || !strings.Contains(r.err, "uploading [####################] ") {
			t.Fatalf("%+v", r)
		}
	}
	if sent := f.requests(); sent[0].body != sent[1].body {
		t.Error("the same folder makes two bundles")
	}
	f.answers["POST /api/v1/artifacts"] = []answer{{status: 422, body: `{"detail": "the bundle needs Python 3.11, and there is 3.13"}`}}
	if r := f.run(t, "artifact", "push", dir); r.status != exitFailed || !strings.HasSuffix(r.err, "topsail: the bundle needs Python 3.11, and there is 3.13\n") {
		t.Errorf("%+v", r)
	}
}

func TestPull(t *testing.T) {
	f := newFake(t)
	f.here(t)
	var archive bytes.Buffer
	z := zip.NewWriter(&archive)
	require.NoError(t, z.Close())
	sum := sha256.Sum256(archive.Bytes())
	name := hex.EncodeToString(sum[:])
	what := "GET /api/v1/artifacts/sha256:" + name + "/content"
	f.answer(what, answer{status: 200, body: archive.String()})
	dir := t.TempDir()
	t.Chdir(dir)
	if r := f.run(t, "artifact", "pull", "sha256:"+name); r.status != 0 || r.out != name+".zip\n" {
		t.Fatalf("%+v", r)
	}
	if got, err := os.ReadFile(name + ".zip"); err != nil || !bytes.Equal(got, archive.Bytes()) {
		t.Errorf("%q, %v", got, err)
	}
	if r := f.run(t, "artifact", "pull", "sha256:"+name); r.status != exitFailed || !strings.Contains(r.err, "already exists") {
		t.Errorf("%+v", r)
	}
	f.answers[what] = []answer{{status: 200, body: "something else"}}
	if r := f.run(t, "artifact", "pull", "sha256:"+name, "-f", "b.zip"); r.status != exitFailed || !strings.Contains(r.err, "does not match its digest") {
		t.Errorf("%+v", r)
	}
	f.answers[what] = []answer{{serve: func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Length", "1000")
		_, _ = io.WriteString(w, "half of it")
	}}}
	if r := f.run(t, "artifact", "pull", "sha256:"+name, "-f", "b.zip"); r.status != exitFailed || !strings.Contains(r.err, "was interrupted") {
		t.Errorf("%+v", r)
	}
	if entries, err := os.ReadDir(dir); err != nil || len(entries) != 1 {
		t.Errorf("what failed leaves %v, %v", entries, err)
	}
}
