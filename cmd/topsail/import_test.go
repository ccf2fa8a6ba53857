//go:build system

package main

import (
	"encoding/json"
	"io"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/topsail-serving/topsail/serving/bundle"
	"github.com/topsail-serving/topsail/test/require"
	"github.com/topsail-serving/topsail/test/wait"
)

// TestModelsOfOtherServersAreImported asks them by the Open Inference Protocol, with the names that their servers' clients
// use. Their environments are there, as on a node that ran others like them before.
func TestModelsOfOtherServersAreImported(t *testing.T) {
	t.Parallel()
	dir, models := t.TempDir(), t.TempDir()
	in := start(t, dir, "", "--gateway-expose-models")
	o := operate(t, in)
	o.python("import_models.py", models)
	var would struct {
		Versions []struct {
			Manifest bundle.Manifest
		}
	}
	if err := json.Unmarshal([]byte(o.do("import", models, "--dry-run", "-o", "json")), &would); err != nil || len(would.Versions) != 2 {
		t.Fatalf("%v: it would import %+v", err, would)
	}
	for _, v := range would.Versions {
		warm(t, filepath.Join(dir, "data", "runtimes", "environments", bundle.EnvironmentID(&v.Manifest)))
	}
	if out := o.do("import", models); out != "flowers:v0.1.0 is deployed\ngreeter:1 is deployed\n" {
		t.Errorf("it says %s", out)
	}
	o.do("import", filepath.Join(models, "greeter"), "--app", "Greeter", "--slo", "30s", "--default", "null")
	o.infers("flowers", `{"inputs": [{"name": "petals", "datatype": "FP32", "shape": [2, 2], "data": [0, 0, 1, 1]}]}`,
		`{"name":"predict","datatype":"INT64","shape":[2],"data":[7,8]}`)
	ask := `{"inputs": [{"name": "NAME", "datatype": "BYTES", "shape": [2, 1], "data": ["Ann", "Bo"]},
		{"name": "NUMBERS", "datatype": "FP32", "shape": [2, 2], "data": [1, 2, 3, 4.5]}]}`
	o.infers("Greeter", ask, `{"name":"GREETING","datatype":"BYTES","shape":[2,1],"data":["Hello Ann","Hello Bo"]}`,
		`{"name":"SUM","datatype":"FP64","shape":[2,1],"data":[3.0,7.5]}`)
	o.infers("Greeter", strings.Replace(ask, "Bo", "", 1), "who is it?")
	if out := in.output(); strings.Contains(out, "installing") {
		t.Errorf("an environment was built although there is one:\n%s", out)
	}
}

// infers waits until a model answers with all that is wanted.
func (o *operator) infers(model, body string, want ...string) {
	o.t.Helper()
	last := ""
	defer func() { o.t.Logf("%s answers %s", model, last) }()
	wait.Until(o.t, "an answer of "+model, func() bool {
		request, err := http.NewRequestWithContext(o.t.Context(), http.MethodPost, o.setting("TOPSAIL_URL")+"/v2/models/"+model+"/infer", strings.NewReader(body))
		require.NoError(o.t, err)
		response, err := o.client.Do(request)
		require.NoError(o.t, err)
		defer response.Body.Close()
		text, err := io.ReadAll(response.Body)
		require.NoError(o.t, err)
		last = string(text)
		return !slices.ContainsFunc(want, func(w string) bool { return !strings.Contains(last, w) })
	})
}
