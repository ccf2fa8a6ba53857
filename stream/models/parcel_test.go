package models

import (
	"archive/zip"
	"bytes"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/topsail-serving/topsail/serving"
	"github.com/topsail-serving/topsail/serving/bundle"
	"github.com/topsail-serving/topsail/test/require"
)

// TestKinds makes a bundle of each kind of model.
func TestKinds(t *testing.T) {
	archive := func(names ...string) []byte {
		var out bytes.Buffer
		z := zip.NewWriter(&out)
		for _, name := range names {
			f, err := z.Create(name)
			require.NoError(t, err)
			fmt.Fprint(f, "content of ", name)
		}
		require.NoError(t, z.Close())
		return out.Bytes()
	}
	var packed bytes.Buffer
	require.NoError(t, bundle.Write(&packed, &bundle.Manifest{Runtime: "python", Python: "3.11", Entry: "m:f", InputType: serving.Doubles}, fstest.MapFS{"m.py": {Data: []byte("f = 1")}}))
	for _, one := range []struct {
		model           Model
		manifest, files string
	}{
		{Model{Kind: "python"}, "python 3.11 model.pkl []", "model.pkl"},
		{Model{Kind: "python", Entry: "wine.taste:predict", Python: "3.12"}, "python 3.12 wine.taste:predict []", "wine/taste.py"},
		{Model{Kind: "sklearn", Requirements: []string{"scikit-learn==1.5.2"}}, "sklearn 3.11 model.pkl []", "model.pkl"},
		{Model{Kind: "onnx"}, "onnx 3.11 model.onnx []", "model.onnx"},
		{Model{Kind: "onnx", Entry: "deep/net.onnx"}, "onnx 3.11 deep/net.onnx []", "deep/net.onnx"},
		{Model{Kind: "torch"}, "torch 3.11 model.pt []", "model.pt"},
		{Model{Kind: "xgboost"}, "xgboost 3.11 model.json []", "model.json"},
		{Model{Kind: "lightgbm"}, "lightgbm 3.11 model.txt []", "model.txt"},
		{Model{Kind: "r"}, "r 3.11 model.R []", "model.R"},
		{Model{Kind: "pyspark", Entry: "pipeline", Archive: true, Data: archive("pipeline/a", "pipeline/b/c")}, "pyspark 3.11 pipeline []", "pipeline/a pipeline/b/c"},
		{Model{Kind: "tensorflow", Archive: true, Data: archive("saved_model.pb", "variables/x")}, "tensorflow 3.11 saved_model []", "saved_model/saved_model.pb saved_model/variables/x"},
		{Model{Kind: "tensorflow", Archive: true, Entry: "wine/1", Data: archive("wine/1/saved_model.pb")}, "tensorflow 3.11 wine/1 []", "wine/1/saved_model.pb"},
		{Model{Kind: "pmml"}, "pmml  model.pmml []", "model.pmml"},
		{Model{Kind: "command"}, "command   [./serve]", "serve"},
		{Model{Kind: "command", Archive: true, Data: archive("bin/run", "x"), Command: []string{"./bin/run", "-v"}}, "command   [./bin/run -v]", "bin/run x"},
		{Model{Kind: "bundle", Data: packed.Bytes()}, "python 3.11 m:f []", "m.py"},
	} {
		m := one.model
		m.Name, m.Version, m.InputType = "m", "1", "doubles"
		if m.Data == nil {
			m.Data = []byte("the model")
		}
		d := deployment{handler: new(handler), model: &m}
		if why := d.checked(); why != nil {
			t.Errorf("%s: %v", m.Kind, why)
			continue
		}
		var digests []string
		for range 2 {
			p := parcelOf(t, &m)
			content, err := os.ReadFile(p.bundle)
			require.NoError(t, err)
			b, err := bundle.Open(bytes.NewReader(content), int64(len(content)))
			if err == nil {
				err = b.Verify(t.Context())
			}
			if err != nil {
				t.Fatalf("%s: %v", m.Kind, err)
			}
			got := b.Manifest
			var files []string
			for name := range got.Files {
				files = append(files, name)
			}
			slices.Sort(files)
			if text := fmt.Sprintf("%s %s %s %v", got.Runtime, got.Python, got.Entry, got.Command); text != one.manifest || strings.Join(files, " ") != one.files {
				t.Errorf("%s: %q with %v, want %q with %s", m.Kind, text, files, one.manifest, one.files)
			}
			digest, err := bundle.Digest(bytes.NewReader(content))
			require.NoError(t, err)
			digests = append(digests, digest)
			p.remove()
			if _, err := os.Stat(p.dir); !os.IsNotExist(err) {
				t.Errorf("the folder is left: %v", err)
			}
		}
		if digests[0] != digests[1] {
			t.Errorf("%s: the same model makes two bundles", m.Kind)
		}
	}
}

func parcelOf(t *testing.T, m *Model) *parcel {
	t.Helper()
	f, why := factoryOf(m.Kind, nil)
	if why != nil {
		t.Fatal(why)
	}
	p, err := newParcel()
	if err == nil {
		err = p.receive(m, bytes.NewReader(m.Data), 1<<20)
	}
	if err == nil {
		err = p.pack(f, m, "3.11", 1<<20)
	}
	if err != nil {
		t.Fatalf("%s: %v", m.Kind, err)
	}
	return p
}
