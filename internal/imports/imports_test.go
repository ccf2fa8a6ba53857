package imports

import (
	"archive/zip"
	"bytes"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"pgregory.net/rapid"

	"github.com/topsail-serving/topsail/serving"
	"github.com/topsail-serving/topsail/serving/bundle"
	"github.com/topsail-serving/topsail/test/require"
)

var with311 = Options{Python: "3.11"}

func find(t testing.TB, at string, options Options) *Found {
	t.Helper()
	f, err := Find(at, options)
	require.NoError(t, err)
	t.Cleanup(func() {
		if err := f.Close(); err != nil {
			t.Error(err)
		}
	})
	return f
}

// packed is the bundle of a version, as it is read back.
func packed(t testing.TB, v *Version) (*bundle.Bundle, []byte) {
	t.Helper()
	dir := t.TempDir()
	require.NoError(t, v.Write(dir))
	var archive bytes.Buffer
	require.NoError(t, bundle.Write(&archive, v.Manifest, os.DirFS(dir)))
	b, err := bundle.Open(bytes.NewReader(archive.Bytes()), int64(archive.Len()))
	require.NoError(t, err)
	require.NoError(t, b.Verify(t.Context()))
	return b, archive.Bytes()
}

// TestBundles packs all that testdata has. What the command lists of them is in cmd/topsail/admin/testdata.
func TestBundles(t *testing.T) {
	want := map[string]string{
		"boosted-trees:2":   "model.json",
		"churn:":            "model.joblib",
		"iris:v0.1.0":       "features/scale.py model.joblib",
		"lgbm:":             "model.bst",
		"adder:1":           "1/model.py config.pbtxt requirements.txt triton.json vocabulary.txt",
		"densenet-onnx:2":   "model.onnx",
		"densenet-onnx:10":  "model.onnx",
		"scripted:3":        "net.pt",
		"squeezenet1-1:1.0": "index_to_name.json model-config.yaml requirements.txt squeezenet.pt",
		"segments:2":        "fcn.pt",
	}
	got := map[string]string{}
	for _, at := range []string{"mlserver", "triton", "torchserve"} {
		for _, v := range find(t, filepath.Join("testdata", at), with311).Versions {
			b, _ := packed(t, v)
			got[v.ModelID.String()] = strings.Join(slices.Sorted(maps.Keys(b.Manifest.Files)), " ")
		}
	}
	if !maps.Equal(got, want) {
		t.Errorf("the bundles have %q", got)
	}
}

func only(t testing.TB, at string, options Options) *Version {
	t.Helper()
	f := find(t, at, options)
	if len(f.Versions) != 1 {
		t.Fatalf("%s has %+v", at, f)
	}
	return f.Versions[0]
}

// TestOptions are those of runtimes: what the command does not list.
func TestOptions(t *testing.T) {
	for at, want := range map[string]map[string]string{
		"mlserver/churn":         {"method": "predict_proba"},
		"mlserver/Boosted_Trees": {"output": "label"},
		"mlserver/lgbm":          {},
		"torchserve/segments":    {"handler": "image_segmenter"},
		"triton/scripted":        {},
	} {
		if got := only(t, filepath.Join("testdata", at), with311).Manifest.Options; !maps.Equal(got, want) {
			t.Errorf("%s has the options %v", at, got)
		}
	}
	for _, v := range find(t, "testdata/triton/densenet_onnx", with311).Versions {
		if v.Manifest.Options["device"] != "cuda" {
			t.Errorf("%v has the options %v", v.ModelID, v.Manifest.Options)
		}
	}
}

func TestTheShimIsTold(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, only(t, "testdata/triton/adder", with311).Write(dir))
	got, err := os.ReadFile(filepath.Join(dir, "triton.json"))
	for _, want := range []string{
		`{"file":"model.py","version":"1","kind":"CPU","config":{"name":"adder",`, `"max_batch_size":16,`,
		`"input":[{"name":"INPUT0","data_type":"TYPE_FP32","dims":[-1],"optional":false},`,
		`"output":[{"name":"SUM","data_type":"TYPE_FP32","dims":[-1],"optional":false},{"name":"TEXT","data_type":"TYPE_STRING","dims":[1],`,
		`"offset":{"string_value":"1.5"}`,
	} {
		if err != nil || !strings.Contains(string(got), want) {
			t.Errorf("%v, %s has no %s", err, got, want)
		}
	}
}

// zipped is an archive of a folder.
func zipped(t testing.TB, folder string, more ...zip.FileHeader) string {
	t.Helper()
	var archive bytes.Buffer
	z := zip.NewWriter(&archive)
	require.NoError(t, z.AddFS(os.DirFS(folder)))
	for _, header := range more {
		if _, err := z.CreateRaw(&header); err != nil {
			t.Fatal(err)
		}
	}
	require.NoError(t, z.Close())
	at := filepath.Join(t.TempDir(), "some.mar")
	require.NoError(t, os.WriteFile(at, archive.Bytes(), 0o600))
	return at
}

func TestAnArchiveIsItsFolder(t *testing.T) {
	at := zipped(t, "testdata/torchserve/squeezenet")
	_, want := packed(t, only(t, "testdata/torchserve/squeezenet", with311))
	if _, got := packed(t, only(t, at, with311)); !bytes.Equal(got, want) {
		t.Error("the archive makes another bundle than its folder")
	}
	if f := find(t, filepath.Dir(at), with311); len(f.Versions) != 1 || f.Versions[0].Name != "squeezenet1_1" {
		t.Errorf("in a folder of archives: %+v", f)
	}
}

func TestArchivesThatAreRefused(t *testing.T) {
	bad := filepath.Join(t.TempDir(), "bad.mar")
	require.NoError(t, os.WriteFile(bad, []byte("PK"), 0o600))
	empty := filepath.Join(t.TempDir(), "empty.mar")
	require.NoError(t, os.Rename(zipped(t, t.TempDir()), empty))
	large := zip.FileHeader{Name: "weights.bin", UncompressedSize64: 9 << 30}
	for at, want := range map[string]string{
		bad:   "not a zip archive",
		empty: "MANIFEST.json: file does not exist",
		zipped(t, "testdata/torchserve/squeezenet", large): "bytes, and a bundle has at most 8589934592",
	} {
		if f := find(t, at, with311); len(f.Refused) != 1 || !strings.Contains(f.Refused[0].Why, want) {
			t.Errorf("%s: %+v", want, f)
		}
	}
}

func TestRequirementsAreOverridden(t *testing.T) {
	v := only(t, "testdata/mlserver/iris", Options{Python: "3.11", Require: []string{"Scikit_Learn==1.7.2", "polars==1.0"}})
	if got := strings.Join(v.Manifest.Requirements, " "); got != "numpy>=1.26,<3 Scikit_Learn==1.7.2 polars==1.0" {
		t.Errorf("it needs %s", got)
	}
}

func TestTablesNeedPandas(t *testing.T) {
	const implementation = `"implementation": "mlserver_sklearn.SKLearnModel"`
	const column, output = `"inputs": [{"name": "a", "datatype": "FP32", "shape": [-1]}]`, `"outputs": [{"name": "predict", "datatype": "FP32", "shape": [-1]}]`
	for settings, want := range map[string]string{
		`{` + implementation + `,` + output + `}`: "scikit-learn",
		`{` + implementation + `,` + column + `}`: "pandas==2.2.0 scikit-learn",
	} {
		folder := fstest.MapFS{settingsName: {Data: []byte(settings)}, "model.pkl": {}}
		if strings.Contains(want, "pandas") {
			folder["requirements.txt"] = &fstest.MapFile{Data: []byte("pandas==2.2.0")}
		}
		versions, err := readMLServer(folder, "m")
		if err != nil || strings.Join(versions[0].Manifest.Requirements, " ") != want {
			t.Errorf("%s: %v, %+v", settings, err, versions)
		}
	}
}

func TestPathsThatHaveNoModels(t *testing.T) {
	for at, want := range map[string]string{
		t.TempDir():                      "looked for model-settings.json (MLServer), config.pbtxt (Triton), files *.mar and MAR-INF/MANIFEST.json (TorchServe)",
		filepath.Join(t.TempDir(), "no"): "no such file",
	} {
		if _, err := Find(at, with311); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", at, err)
		}
	}
}

// TestNothingLeadsOut has links in the folder of a model: to a file in it, which is taken, and to others.
func TestNothingLeadsOut(t *testing.T) {
	for target, want := range map[string]string{"files/model.bst": "", "/etc/passwd": "escapes", "../secret": "escapes"} {
		dir := filepath.Join(t.TempDir(), "model")
		require.NoError(t, os.CopyFS(dir, os.DirFS("testdata/mlserver/lgbm")))
		require.NoError(t, os.WriteFile(filepath.Join(dir, "..", "secret"), nil, 0o600))
		settings := strings.ReplaceAll(readFile(t, filepath.Join(dir, settingsName)), `"files"`, `"link.bst"`)
		require.NoError(t, os.WriteFile(filepath.Join(dir, settingsName), []byte(settings), 0o600))
		require.NoError(t, os.Symlink(target, filepath.Join(dir, "link.bst")))
		f := find(t, dir, with311)
		if want == "" {
			if len(f.Versions) == 1 {
				packed(t, f.Versions[0])
				continue
			}
		}
		if len(f.Refused) != 1 || want == "" || !strings.Contains(f.Refused[0].Why, want) {
			t.Errorf("%s: %+v", target, f)
		}
	}
}

func readFile(t testing.TB, at string) string {
	t.Helper()
	text, err := os.ReadFile(at)
	require.NoError(t, err)
	return string(text)
}

func TestConfigurationsAreBounded(t *testing.T) {
	folder := fstest.MapFS{settingsName: {Data: bytes.Repeat([]byte(" "), maxText+1)}}
	if _, err := readMLServer(folder, "m"); err == nil || !strings.Contains(err.Error(), "more than 1048576 bytes") {
		t.Errorf("error is %v", err)
	}
	for _, s := range []string{`{"max_batch_time": -1}`, `{"max_batch_size": -1}`, `{"parallel_workers": -1}`, `{"max_batch_time": 1e300}`} {
		if _, err := parseSettings([]byte(s)); err == nil {
			t.Errorf("%s is read", s)
		}
	}
	if _, err := parseConfig([]byte("max_batch_size: -1")); err == nil {
		t.Error("a batch may be negative")
	}
}

func TestAManifestOfAnotherKind(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "adder")
	require.NoError(t, os.CopyFS(dir, os.DirFS("testdata/triton/adder")))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "manifest.json"), nil, 0o600))
	if f := find(t, dir, with311); len(f.Refused) != 1 || !strings.Contains(f.Refused[0].Why, "has a file manifest.json") {
		t.Errorf("%+v", f)
	}
}

func TestTheSameModelTwice(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"a-b", "a_b"} {
		require.NoError(t, os.CopyFS(filepath.Join(dir, name), os.DirFS("testdata/triton/scripted")))
	}
	f := find(t, dir, with311)
	if len(f.Versions) != 1 || len(f.Refused) != 1 || f.Refused[0].Why != `a-b:3 is also made of "a-b": rename one` {
		t.Errorf("%+v", f)
	}
}

// TestMLServerSignatures draws metadata: what is brought takes one query of what it takes as a batch.
func TestMLServerSignatures(t *testing.T) {
	datatypes := []string{"BOOL", "INT8", "INT16", "INT32", "INT64", "UINT8", "UINT16", "UINT32", "UINT64", "FP16", "BF16", "FP32", "FP64", "BYTES"}
	rapid.Check(t, func(t *rapid.T) {
		name := rapid.StringMatching(`[A-Za-z0-9_.-]{1,80}`).Draw(t, "name")
		width := rapid.IntRange(-1, 5).Draw(t, "width")
		datatype := rapid.SampledFrom(datatypes).Draw(t, "datatype")
		v := newVersion(name, "", "sklearn")
		s := settings{Inputs: []settingsTensor{{"x", datatype, []int{-1, width}}}}
		require.NoError(t, v.describe(&s))
		v.Manifest.Entry = "model.joblib"
		v.files = []file{{name: "model.joblib"}}
		if err := v.complete(with311); (err != nil) != (v.Model == "") {
			t.Fatalf("%q: %v", v.Model, err)
		}
		shape := v.Manifest.Signature.Inputs[0].Shape
		if width == 1 && shape != nil || width != 1 && !slices.Equal(shape, []int{width}) {
			t.Errorf("width %d became %v", width, shape)
		}
		text := serving.DType(v.Manifest.Signature.Inputs[0].Type) == serving.String
		if text != (datatype == "BYTES") {
			t.Errorf("%s became %v", datatype, v.Manifest.Signature.Inputs[0])
		}
	})
}

// whole holds what a reader makes of a folder to what a bundle may be.
func whole(t *testing.T, from fs.FS, read func(fs.FS, string) ([]*Version, error)) {
	versions, err := read(from, "folder")
	if err != nil {
		return
	}
	for _, v := range versions {
		if v.complete(with311) == nil {
			packed(t, v)
		}
	}
}

func fuzz(f *testing.F, name string, files []string, read func(fs.FS, string) ([]*Version, error)) {
	found, err := filepath.Glob(filepath.Join("testdata", "*", "*", name))
	if err != nil || len(found) == 0 {
		f.Fatal(found, err)
	}
	for _, at := range found {
		f.Add([]byte(readFile(f, at)))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		folder := fstest.MapFS{name: {Data: text}}
		for _, file := range files {
			folder[file] = &fstest.MapFile{Data: []byte("model")}
		}
		whole(t, folder, read)
	})
}

func FuzzSettings(f *testing.F) {
	fuzz(f, settingsName, []string{"model.joblib", "model.bst", "files/model.bst", "a.py"}, readMLServer)
}

func FuzzConfig(f *testing.F) {
	fuzz(f, configName, []string{"1/model.onnx", "1/model.py", "1/model.pt", "3/net.pt", "triton.json"}, readTriton)
}

func FuzzMAR(f *testing.F) {
	fuzz(f, marName, []string{"squeezenet.pt", "fcn.pt", "requirements.txt"}, readMAR)
}

// FuzzRequirements reads what a requirements.txt may say: every line becomes one that a bundle takes, or a note.
func FuzzRequirements(f *testing.F) {
	f.Add(readFile(f, "testdata/mlserver/iris/requirements.txt"))
	f.Fuzz(func(t *testing.T, text string) {
		v := newVersion("m", "", "sklearn")
		if err := v.require(fstest.MapFS{"r": {Data: []byte(text)}}, "r", "numpy"); err != nil {
			return
		}
		for _, line := range v.Manifest.Requirements {
			if name, _ := bundle.RequiredPackage(line); name == "" {
				t.Errorf("%q is required", line)
			}
		}
	})
}
