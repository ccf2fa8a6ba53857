package models

import (
	"archive/zip"
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/topsail-serving/topsail/serving"
	"github.com/topsail-serving/topsail/test/require"
)

// TestOwnKinds become bundles with the code of the kind, which is told what to load.
func TestOwnKinds(t *testing.T) {
	code := filepath.Join(t.TempDir(), "caffe.py")
	require.NoError(t, os.WriteFile(code, []byte("class Caffe: …"), 0o600))
	caffe := OwnKind{Name: "caffe", Code: code, Entry: "kinds.caffe:Caffe", Requirements: []string{"caffe==1"}, ModelType: 7}
	folder := caffe
	folder.Name, folder.Code, folder.Entry = "folder", filepath.Dir(code), "caffe:Caffe"
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.run(func(c *Config) { c.Kinds = []OwnKind{caffe, folder} })
		for version, one := range map[string]struct {
			kind, entry, model string
			archive            bool
			options, code      string
		}{
			"1": {kind: "caffe", model: "model", options: `"model": "model"`, code: "kinds/caffe.py"},
			"2": {kind: "folder", entry: "net.bin", model: "net.bin", options: `"model": "net.bin"`, code: "caffe.py"},
			"3": {kind: "caffe", archive: true, model: "model/weights", options: `"model": "model"`, code: "kinds/caffe.py"},
		} {
			data := []byte("weights")
			if one.archive {
				data = zipped(t, "weights", "weights")
			}
			m := &Model{Name: "cats", Version: version, Kind: one.kind, Entry: one.entry, Data: data, Archive: one.archive, InputType: "bytes", Requirements: []string{"numpy"}}
			w.write(message(version, m))
			w.settle()
			out := w.read("out")
			ack, err := ParseAcknowledgement(out[len(out)-1].Value, 2)
			if err != nil || ack.Outcome != Deployed {
				t.Fatalf("version %s: %+v, %v, %v", version, ack, err, w.read("dead"))
			}
			files := w.unzipped(ack.Bundle)
			if files[one.model] != "weights" || files[one.code] != "class Caffe: …" {
				t.Errorf("version %s: the bundle has %v", version, files)
			}
			for _, want := range []string{`"runtime": "python"`, one.options, `"caffe==1"`, `"numpy"`} {
				if !strings.Contains(files["manifest.json"], want) {
					t.Errorf("version %s: the manifest does not say %s: %s", version, want, files["manifest.json"])
				}
			}
		}
	})
	for _, one := range []struct {
		kinds []OwnKind
		says  string
	}{
		{[]OwnKind{{Name: "onnx", Code: code, Entry: "a:B"}}, "not one of command, lightgbm, onnx"},
		{[]OwnKind{caffe, caffe}, "twice"},
		{[]OwnKind{{Name: "x", Code: code, Entry: "caffe.pkl"}}, "nor module:callable"},
		{[]OwnKind{{Name: "x", Code: code, Entry: "a:B", ModelType: 2}}, "from 3 on"},
	} {
		if err := checkKinds(one.kinds); err == nil || !strings.Contains(err.Error(), one.says) {
			t.Errorf("%+v: %v", one.kinds, err)
		}
	}
	if u, err := parseDescriptor(&serving.StreamRecord{Value: described("wine", 7, []byte("x"), "").Value, Place: "0/1"}, []Descriptor{{DataType: "wine"}}, []OwnKind{caffe}); err != nil || u.Model.Kind != "caffe" {
		t.Errorf("modeltype 7 is %+v, %v", u.Model, err)
	}
}

func zipped(t *testing.T, name, content string) []byte {
	var b bytes.Buffer
	z := zip.NewWriter(&b)
	f, err := z.Create(name)
	require.NoError(t, err)
	_, err = f.Write([]byte(content))
	require.NoError(t, err)
	require.NoError(t, z.Close())
	return b.Bytes()
}
