//go:build system

package main

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/topsail-serving/topsail/test/require"
	"github.com/topsail-serving/topsail/test/wait"
)

// jar is the evaluator of PMML models.
func jar(t *testing.T) string {
	t.Helper()
	path, err := filepath.Abs("../../build/jvm/topsail-pmml.jar")
	if err == nil {
		_, err = os.Stat(path)
	}
	if err != nil {
		t.Fatalf("%v: run make pmml", err)
	}
	return path
}

// explained is an answer with how it came about.
type explained struct {
	answer
	Explanation struct {
		Models []struct {
			Confidence float64
		}
	}
}

func (in *instance) explain(app, input string) (a explained) {
	in.t.Helper()
	in.answer(app, `{"explain": true, "input": `+input+`}`, &a)
	return a
}

// explains asks until the answer is right: a JVM takes its time with all that it does for
// the first time.
func (in *instance) explains(app, input, want string, right func(explained) bool) {
	in.t.Helper()
	var a explained
	wait.Until(in.t, want, func() bool { a = in.explain(app, input); return right(a) }, func() string { return fmt.Sprintf("%s %s: %+v", app, input, a) })
}

// TestTheExampleOfPMML runs examples/pmml as its README says, on other ports.
func TestTheExampleOfPMML(t *testing.T) {
	t.Parallel()
	jar(t)
	in := start(t, t.TempDir(), "", "--config", "../../examples/pmml/topsail.toml").ready()
	for input, want := range map[string]string{
		"[5.1, 3.5, 1.4, 0.2]": "setosa 1.0000", "[6.3, 2.5, 4.9, 1.5]": "versicolor 0.9792", "[6.0, 2.2, 5.0, 1.5]": "virginica 0.6667",
	} {
		in.explains("iris", input, want, func(a explained) bool {
			return !a.Default && len(a.Explanation.Models) == 1 && fmt.Sprintf("%v %.4f", a.Output, a.Explanation.Models[0].Confidence) == want
		})
	}
	// What the file says: the two coefficients, and that of the cultivar.
	want := 1065*0.0001767568186848482 + 5.64*0.10259511797270937 + 12.980358970631757
	in.explains("wine", `"{\"cultivar\": \"barolo\", \"proline\": 1065, \"color_intensity\": 5.64}"`, fmt.Sprint(want), func(a explained) bool {
		return !a.Default && math.Abs(a.Output.(float64)-want) < 1e-9
	})
	for input, why := range map[string]string{
		`"{\"cultivar\": \"merlot\"}"`: "the field 'cultivar' is 'merlot', and the model takes barolo, grignolino, barbera",
		`"{\"color\": 1}"`:             "the field 'color' is unknown: the model takes proline, color_intensity, cultivar",
		`"1065"`:                       "the input is not a JSON object",
	} {
		in.explains("wine", input, why, func(a explained) bool { return a.Default && strings.Contains(a.answer.Explanation, why) })
	}
}

// TestPMMLWithASignature asks a model by the names of its fields, beside the gateway's checks.
func TestPMMLWithASignature(t *testing.T) {
	t.Parallel()
	model, err := filepath.Abs("../../examples/pmml/wine.pmml")
	require.NoError(t, err)
	const signature = `{ inputs = [{ name = "proline", type = "float64" }, { name = "color_intensity", type = "float32" }, { name = "cultivar", type = "string" }],
  outputs = [{ name = "alcohol", type = "float64" }] }`
	in := start(t, t.TempDir(), fmt.Sprintf(`
[[app]]
name = "wine"
signature = %[1]s
default_output = "none"
latency_slo_micros = 1000000
models = ["wine"]

[[model]]
name = "wine"
version = "1"
signature = %[1]s
command = ["java", "-XX:+UseSerialGC", "-Xmx96m", "-jar", %[2]q, %[3]q]
`, signature, jar(t), model)).ready()
	ask := func(inputs string) string {
		_, text, err := in.post("/wine/predict", `{"inputs": `+inputs+`}`)
		require.NoError(t, err)
		return text
	}
	for inputs, want := range map[string]string{
		`{"cultivar": "barolo", "proline": 0, "color_intensity": 0}`: `"outputs":{"alcohol":12.980358970631757}`,
		`{"cultivar": "merlot", "proline": 0, "color_intensity": 0}`: "the field 'cultivar' is 'merlot', and the model takes barolo, grignolino, barbera",
		`{"cultivar": "barolo", "proline": 0}`:                       "color_intensity",
	} {
		var got string
		wait.Until(t, "answer with "+want, func() bool {
			got = ask(inputs)
			return strings.Contains(got, want)
		})
		t.Log(got)
	}
}

// TestABundleOfPMML deploys a model, and has one refused that is none. The jar is beside
// the program.
func TestABundleOfPMML(t *testing.T) {
	t.Parallel()
	beside := filepath.Join(filepath.Dir(programs.topsail), "topsail-pmml.jar")
	require.NoError(t, os.Symlink(jar(t), beside))
	t.Cleanup(func() { os.Remove(beside) })
	o := operate(t, start(t, t.TempDir(), ""))
	iris, err := os.ReadFile("../../examples/pmml/iris.pmml")
	require.NoError(t, err)
	manifest := `{"runtime": "pmml", "entry": "model.pmml", "input_type": "doubles", "input_length": %d, "example": [5.1, 3.5, 1.4, 0.2]%s}`
	bundle := func(length int, more, model string) string {
		return pack(t, fmt.Sprintf(manifest, length, more), map[string][]byte{"model.pmml": []byte(model)})
	}
	o.do("deploy", "iris", "--bundle", bundle(4, `, "options": {"heap": "64m"}`, string(iris)), "--app", "flowers", "--slo", "2s", "--default", "none")
	o.answers("flowers", "[5.1, 3.5, 1.4, 0.2]", `"setosa"`)

	o.refused(1, `runtime "pmml" needs the model's file`, "deploy", "other", "--bundle", pack(t, `{"runtime": "pmml", "entry": "none.pmml"}`, nil))
	o.do("deploy", "page", "--bundle", bundle(4, "", "<html/>"), "--wait", "0")
	wait.Until(t, "log that says why", func() bool {
		out, _, _ := o.run("logs", "page")
		return strings.Contains(out, "model.pmml is not PMML: its first element is html")
	})
}
