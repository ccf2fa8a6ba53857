package bundle

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"reflect"
	"strings"
	"testing"

	"github.com/topsail-serving/topsail/internal/schema"
	"github.com/topsail-serving/topsail/test/require"

	"pgregory.net/rapid"

	"github.com/topsail-serving/topsail/serving"
)

var anySum = strings.Repeat("ab", 32)

// manifest is a good one with some fields changed; nil takes one out.
func manifest(t testing.TB, change map[string]any) []byte {
	t.Helper()
	fields := map[string]any{
		"format": 1, "runtime": "sklearn", "python": "3.11", "requirements": []string{"scikit-learn==1.5.2"}, "entry": "model.pkl",
		"input_type": "doubles", "input_length": 4, "example": []float64{5.1, 3.5, 1.4, 0.2}, "description": "of flowers",
		"options": map[string]string{"method": "predict"}, "files": map[string]any{"model.pkl": map[string]any{"sha256": anySum, "size": 3}},
	}
	maps.Copy(fields, change)
	maps.DeleteFunc(fields, func(_ string, v any) bool { return v == nil })
	text, err := json.Marshal(fields)
	require.NoError(t, err)
	return text
}

func command(command ...string) map[string]any {
	return map[string]any{"runtime": "command", "python": nil, "requirements": nil, "entry": nil, "command": command}
}

func pmml(entry string) map[string]any {
	return map[string]any{"runtime": "pmml", "python": nil, "requirements": nil, "options": nil, "entry": entry}
}

// also is a manifest's changes with one more.
func also(change map[string]any, name string, value any) map[string]any {
	change[name] = value
	return change
}

func TestParseManifest(t *testing.T) {
	m, err := ParseManifest(manifest(t, nil))
	require.NoError(t, err)
	if m.Runtime != "sklearn" || m.InputType != serving.Doubles || m.Files["model.pkl"].Size != 3 || m.Options["method"] != "predict" {
		t.Errorf("it came out as %+v", m)
	}
}

func TestManifestsThatAreGood(t *testing.T) {
	for _, change := range []map[string]any{
		{"runtime": "python", "entry": "wine.model:Model.load"},
		{"runtime": "tensorflow", "entry": "model", "files": map[string]any{"model/saved_model.pb": map[string]any{"sha256": anySum, "size": 0}}},
		{"runtime": "pyspark", "entry": "model", "files": map[string]any{"model/part-0": map[string]any{"sha256": anySum, "size": 0}}},
		{"requirements": nil, "input_type": nil, "input_length": nil, "example": nil, "description": nil, "options": nil},
		{"input_type": "strings", "input_length": nil, "example": "good wine"},
		{"input_type": "bytes", "input_length": 3, "example": "AAEC"},
		{"input_type": "ints", "input_length": nil, "example": []int{1, -2}},
		{"runtime": "host", "entry": nil, "input_type": nil, "input_length": nil, "example": nil, "options": nil},
		pmml("model.pkl"), also(pmml("model.pkl"), "options", map[string]string{"heap": "512m"}),
		command("./model.pkl", "--port", "0"), command("java", "-jar", "model.pkl"), command("/usr/bin/env"),
	} {
		if _, err := ParseManifest(manifest(t, change)); err != nil {
			t.Errorf("%v: %v", change, err)
		}
	}
}

func TestManifestsThatAreRefused(t *testing.T) {
	many := make([]string, maxRequirements+1)
	for i := range many {
		many[i] = fmt.Sprintf("package%d", i)
	}
	for _, c := range []struct {
		change map[string]any
		want   string
	}{
		{map[string]any{"format": 2, "color": "red"}, "this release of Topsail reads format 1"},
		{map[string]any{"format": nil}, "has format none"},
		{map[string]any{"requirments": []string{}}, `"requirments" is unknown: did you mean "requirements"?`},
		{map[string]any{"Entry": "x"}, `"Entry" is unknown`},
		{map[string]any{"files": map[string]any{"model.pkl": map[string]any{"sha256": anySum, "size": 3, "mode": 1}}}, `.mode" is unknown`},
		{map[string]any{"runtime": "caffe"}, "is unknown"},
		{map[string]any{"runtime": nil}, "is unknown"},
		{map[string]any{"python": nil}, "MAJOR.MINOR"},
		{map[string]any{"python": "3.11.4"}, "MAJOR.MINOR"},
		{map[string]any{"python": "3.9"}, "3.10 or later"},
		{map[string]any{"entry": nil}, "entry is missing"},
		{map[string]any{"entry": "other.pkl"}, "neither a file"},
		{map[string]any{"entry": "../model.pkl"}, "neither a file"},
		{map[string]any{"entry": "import os:x"}, "neither a file"},
		{map[string]any{"runtime": "host"}, "are for models"},
		{map[string]any{"command": []string{"x"}}, `command is for runtime "command"`},
		{map[string]any{"input_type": "tensor"}, "unknown"},
		{map[string]any{"input_type": "tensors", "input_length": nil}, "needs a signature"},
		{map[string]any{"input_length": -1}, "input_length"},
		{map[string]any{"input_length": 3}, "4 elements"},
		{map[string]any{"input_type": "ints"}, "whole numbers"},
		{map[string]any{"example": []float64{}}, "empty"},
		{map[string]any{"input_type": "strings", "input_length": nil}, "a string"},
		{map[string]any{"input_type": "bytes", "input_length": nil, "example": "%"}, "base64"},
		{map[string]any{"input_type": "strings", "input_length": 4, "example": "a"}, "vectors only"},
		{map[string]any{"requirements": many}, "201 requirements"},
		{map[string]any{"options": map[string]string{"": "x"}}, "no name"},
		{command(), "command is missing"},
		{command("./serve"), `"./serve", which the bundle does not contain`},
		{command("../serve"), "does not contain"},
		{map[string]any{"runtime": "command", "command": []string{"true"}}, "only its command"},
		{map[string]any{"runtime": "pmml"}, "a program in Java"},
		{pmml("other.pmml"), `entry "other.pmml" is not a file`},
		{pmml("wine:Model"), "is not a file"},
		{also(pmml("model.pkl"), "command", []string{"java"}), `command is for runtime "command"`},
		{also(pmml("model.pkl"), "options", map[string]string{"heap": "512m -agentlib:x"}), "such as"},
	} {
		if _, err := ParseManifest(manifest(t, c.change)); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%v: error is %v, want one with %q", c.change, err, c.want)
		}
	}
}

func TestJSONThatIsRefused(t *testing.T) {
	good := string(manifest(t, nil))
	for text, want := range map[string]string{
		"":                        "is empty",
		"[]":                      "cannot be read",
		good + good:               "cannot be read",
		good[:len(good)-1]:        "unexpected end",
		`{"format":1,"format":1}`: `"format" is given twice`,
		`{"format":1,"example":` + strings.Repeat("[", 9_000) + strings.Repeat("]", 9_000) + `}`: "nested too deep",
		`{"format":1,"files":{"a":{},"a":{}}}`:                                                   `"files.a" is given twice`,
		`{"format":1,"example":[{"b":"b","b":2}]}`:                                               `"example[0].b" is given twice`,
		strings.Repeat(" ", 1<<20) + good:                                                        "at most 1048576 are allowed",
		`{"format":"1"}`:                                                                         "has format",
	} {
		if _, err := ParseManifest([]byte(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.60q: error is %v, want one with %q", text, err, want)
		}
	}
}

func TestRequirements(t *testing.T) {
	for _, line := range []string{
		"numpy", "scikit-learn==1.5.2", "numpy >=1.26, <3", "uvicorn[standard]~=0.30", "torch (==2.3.1)", "a==1.0+cu121",
		`tomli>=2 ; python_version < "3.11" and sys_platform != 'win32'`, "x==1.*",
	} {
		if err := checkRequirement(line); err != nil {
			t.Errorf("%q: %v", line, err)
		}
	}
	for _, line := range []string{
		"", " ", "-r other.txt", "--index-url=http://models.example", "-e .", "numpy --no-binary :all:", "numpy==1 --hash=sha256:aa",
		"./own.whl", "/tmp/own.whl", "file:own.whl", "own.whl @ file:///tmp/own.whl", "a @ https://models.example/a.whl",
		"https://models.example/a.whl", "git+https://models.example/a", "a\nb", "a\r-r b", "a # b", "${HOME}", "a==${SECRET}",
		"a; x --pre", "a \\", "own/", strings.Repeat("a", maxText+1), "a; '\\'", "a;\x00",
	} {
		if checkRequirement(line) == nil {
			t.Errorf("%q is taken", line)
		}
	}
}

func TestEnvironmentID(t *testing.T) {
	id := func(python string, lines ...string) string {
		return EnvironmentID(&Manifest{Python: python, Requirements: lines})
	}
	one := id("3.11", "Scikit_Learn == 1.5.2", "numpy>=1,<3")
	if other := id("3.11", "numpy >= 1, < 3", "scikit-learn==1.5.2", "numpy>=1,<3"); one != other || len(one) != 16 {
		t.Errorf("ids are %s and %s", one, other)
	}
	for _, other := range []string{
		id("3.12", "scikit-learn==1.5.2", "numpy>=1,<3"), id("3.11", "scikit-learn==1.5.3", "numpy>=1,<3"), id("3.11", "numpy>=1,<3"),
	} {
		if one == other {
			t.Error("different needs have one id")
		}
	}
}

func TestOrderDoesNotCount(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		lines := rapid.SliceOf(rapid.StringMatching(`[a-c]{1,3}(==[0-9]\.[0-9])?`)).Draw(t, "lines")
		other := rapid.Permutation(lines).Draw(t, "other")
		a, b := &Manifest{Python: "3.11", Requirements: lines}, &Manifest{Python: "3.11", Requirements: other}
		if EnvironmentID(a) != EnvironmentID(b) {
			t.Fatal("the order of the requirements counts")
		}
	})
}

func TestCheckPython(t *testing.T) {
	m := &Manifest{Python: "3.12"}
	if err := m.CheckPython([]string{"3.11", "3.12"}); err != nil {
		t.Error(err)
	}
	err := m.CheckPython([]string{"3.13", "3.9", "3.11"})
	if err == nil || !strings.Contains(err.Error(), "needs Python 3.12, and here is 3.9, 3.11 and 3.13.") {
		t.Errorf("error is %v", err)
	}
	if err := m.CheckPython(nil); err == nil || !strings.Contains(err.Error(), "no usable Python was found here") {
		t.Errorf("error is %v", err)
	}
	if err := (&Manifest{Runtime: CommandRuntime}).CheckPython(nil); err != nil {
		t.Error(err)
	}
}

func TestDocumentedFields(t *testing.T) {
	doc, err := os.ReadFile("../../docs/bundles.md")
	require.NoError(t, err)
	for _, name := range schema.Keys(schema.JSON.Fields(reflect.TypeFor[Manifest]())) {
		if !strings.Contains(string(doc), "| `"+name+"` |") {
			t.Errorf("docs/bundles.md does not have %s", name)
		}
	}
}

func FuzzParseManifest(f *testing.F) {
	f.Add(manifest(f, nil))
	f.Add(manifest(f, command("./model.pkl")))
	f.Add([]byte(`{"format":2}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		m, err := ParseManifest(text)
		if err != nil {
			return
		}
		again, err := json.Marshal(m)
		require.NoError(t, err)
		other, err := ParseManifest(again)
		if err != nil || EnvironmentID(m) != EnvironmentID(other) {
			t.Fatalf("what was written is not what was read: %s: %v", again, err)
		}
	})
}
