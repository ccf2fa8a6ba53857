package admin

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/topsail-serving/topsail/serving/bundle"
	"github.com/topsail-serving/topsail/test/require"
)

var foreign = filepath.Join("..", "..", "..", "internal", "imports", "testdata")

func TestImportDryRun(t *testing.T) {
	f := newFake(t)
	f.here(t)
	for _, server := range []string{"mlserver", "triton", "torchserve"} {
		r := f.run(t, "import", filepath.Join(foreign, server), "--dry-run", "--python", "3.11")
		if r.status != 0 || r.err != "" {
			t.Errorf("%s: %+v", server, r)
		}
		golden(t, "import_"+server, r.out)
	}
	r := f.run(t, "import", filepath.Join(foreign, "mlserver", "iris"), "--dry-run", "--python", "3.11", "-o", "json")
	golden(t, "import_json", r.out)
	if sent := f.requests(); len(sent) > 0 || r.err != "" {
		t.Errorf("a dry run sends %+v, and says %s", sent, r.err)
	}
}

// TestImport deploys the versions of a model with the members that bundles do not say, and links it to an app.
func TestImport(t *testing.T) {
	f := newFake(t)
	f.here(t)
	f.answer("POST /api/v1/artifacts", uploads(t))
	f.answer("POST /api/v1/models/densenet-onnx/versions", answer{status: 201, body: `{"model": "densenet-onnx", "version": "2", "replicas": 0}`})
	f.answer("PUT /api/v1/apps/densenet_onnx/links/densenet-onnx", answer{status: 200, body: `{}`})
	r := f.run(t, "import", filepath.Join(foreign, "triton", "densenet_onnx"), "--python", "3.11", "--require", "onnxruntime-gpu==1.20.1", "--app", "densenet_onnx")
	sent := f.requests()
	if r.status != 0 || r.out != "densenet-onnx:2 is deployed\ndensenet-onnx:10 is deployed\n" || len(sent) != 6 {
		t.Fatalf("%+v %+v", r, sent)
	}
	for _, want := range []string{"! densenet-onnx:2: optimization is not read\n", "app densenet_onnx is linked to densenet-onnx\n"} {
		if !strings.Contains(r.err, want) {
			t.Errorf("it does not say %q:\n%s", want, r.err)
		}
	}
	want := `{"batch":{"max_size":8,"delay_micros":100},"bundle":"sha256:` + digest + `","replicas":4,"resources":{"gpu":{"count":1}},"version":"2"}`
	if sent[1].body != want {
		t.Errorf("it registers %s, want %s", sent[1].body, want)
	}
	b, err := bundle.Open(strings.NewReader(sent[0].body), int64(len(sent[0].body)))
	require.NoError(t, err)
	if m := b.Manifest; m.Runtime != "onnx" || m.Python != "3.11" || m.Entry != "model.onnx" || strings.Join(m.Requirements, " ") != "onnxruntime-gpu==1.20.1" ||
		m.Signature.Inputs[0].String() != "float32[3,224,224]" {
		t.Errorf("the manifest is %+v", m)
	}
}

// TestImportOfMany goes on behind what cannot be brought. An app is for one model.
func TestImportOfMany(t *testing.T) {
	f := newFake(t)
	f.here(t)
	f.answer("POST /api/v1/artifacts", uploads(t))
	f.answer("POST /api/v1/models/segments/versions", answer{status: 201, body: `{"version": "2", "replicas": 0}`})
	f.answer("POST /api/v1/models/squeezenet1-1/versions", answer{status: 201, body: `{"version": "1.0", "replicas": 0}`})
	at := filepath.Join(foreign, "torchserve")
	r := f.run(t, "import", at, "--python", "3.11")
	if r.status != 0 || r.out != "segments:2 is deployed\nsqueezenet1-1:1.0 is deployed\n" || !strings.Contains(r.err, "- boxes (TorchServe) is not brought: ") {
		t.Errorf("%+v", r)
	}
	r = f.run(t, "import", at, "--python", "3.11", "--app", "images")
	if r.status != exitUsage || !strings.Contains(r.err, "--app is for one model, and there are 2 to deploy") {
		t.Errorf("%+v", r)
	}
}

func TestImportsThatAreRefused(t *testing.T) {
	f := newFake(t)
	f.here(t)
	iris := filepath.Join(foreign, "mlserver", "iris")
	for _, tt := range []struct {
		status int
		want   string
		args   []string
	}{
		{exitFailed, "has no models: looked for model-settings.json", []string{t.TempDir(), "--python", "3.11"}},
		{exitFailed, "there is nothing to deploy", []string{filepath.Join(foreign, "mlserver", "custom"), "--python", "3.11"}},
		{exitUsage, `--require takes a package such as scikit-learn==1.5.2, and not "-r x"`, []string{iris, "--require", "-r x"}},
		{exitFailed, "Topsail's runtime needs 3.10 or later", []string{iris, "--python", "3.9"}},
		{exitUsage, "accepts 1 arg(s), received 0", nil},
	} {
		if r := f.run(t, append([]string{"import"}, tt.args...)...); r.status != tt.status || !strings.Contains(r.err, tt.want) {
			t.Errorf("%v: %+v", tt.args, r)
		}
	}
	t.Setenv("PATH", t.TempDir())
	if r := f.run(t, "import", iris, "--dry-run"); r.status != exitUsage || !strings.Contains(r.err, "name that of the models by --python, as in --python 3.11") {
		t.Errorf("without a python3: %+v", r)
	}
}

// TestImportTakesThePythonThatIsHere asks it once.
func TestImportTakesThePythonThatIsHere(t *testing.T) {
	f := newFake(t)
	f.here(t)
	bin := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(bin, "python3"), []byte("#!/bin/sh\necho 3.12\n"), 0o700))
	t.Setenv("PATH", bin+":"+os.Getenv("PATH"))
	var found struct {
		Versions []struct {
			Manifest bundle.Manifest
		}
	}
	r := f.run(t, "import", filepath.Join(foreign, "mlserver", "iris"), "--dry-run", "-o", "json")
	if err := json.Unmarshal([]byte(r.out), &found); err != nil || found.Versions[0].Manifest.Python != "3.12" {
		t.Errorf("%v: %+v", err, r)
	}
}
