//go:build unix

package launch

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/topsail-serving/topsail/serving"
	"github.com/topsail-serving/topsail/serving/bundle"
	"github.com/topsail-serving/topsail/test/require"
)

// TestBundlesOfTheSDK holds the two implementations of the format against each other.
func TestBundlesOfTheSDK(t *testing.T) {
	sources, err := filepath.Abs("../python/src")
	require.NoError(t, err)
	script := func(text string, args ...string) string {
		t.Helper()
		cmd := exec.CommandContext(t.Context(), "python3", append([]string{"-c", text}, args...)...)
		cmd.Env = append(os.Environ(), "PYTHONPATH="+sources, "PYTHONDONTWRITEBYTECODE=1")
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		return strings.TrimSpace(string(out))
	}

	path := filepath.Join(t.TempDir(), "bundle.zip")
	digest := script(`
import sys
from pathlib import Path
from topsail import bundle
m = bundle.Manifest("sklearn", entry="model.pkl", python="3.11", requirements=("scikit-learn==1.5.2",), input_type="doubles",
    input_length=2, example=[1.5, 2], description="größer", options={"method": "predict"})
b = bundle.build(m, {"model.pkl": b"weights" * 1000, "more/größe.txt": b"x"})
Path(sys.argv[1]).write_bytes(b.data)
print(b.digest)`, path)
	data, err := os.ReadFile(path)
	require.NoError(t, err)
	b, err := bundle.Open(bytes.NewReader(data), int64(len(data)))
	require.NoError(t, err)
	require.NoError(t, b.Verify(t.Context()))
	if got, err := bundle.Digest(bytes.NewReader(data)); err != nil || got != digest {
		t.Errorf("the digest is %s, and the SDK says %s, %v", got, digest, err)
	}
	if m := b.Manifest; m.Description != "größer" || m.Options["method"] != "predict" || string(m.Example) == "" || len(m.Files) != 2 {
		t.Errorf("the manifest is %+v", m)
	}

	signature := `{"inputs":[{"name":"x","type":"float32","shape":[-1,2]},{"name":"größe","type":"string"}],"outputs":[{"name":"y","type":"json"}]}`
	named := filepath.Join(t.TempDir(), "named.zip")
	script(`
import sys
from pathlib import Path
from topsail import bundle
from topsail.container.signature import parse
m = bundle.Manifest("python", entry="m:f", python="3.11", signature=parse(sys.argv[2]), example={"x": [[1.5, 2]], "größe": "L"})
Path(sys.argv[1]).write_bytes(bundle.build(m, {"m.py": b""}).data)`, named, signature)
	if data, err = os.ReadFile(named); err != nil {
		t.Fatal(err)
	}
	if b, err = bundle.Open(bytes.NewReader(data), int64(len(data))); err != nil {
		t.Fatal(err)
	}
	if m := b.Manifest; m.Signature.JSON() != signature || m.InputType != serving.Tensors {
		t.Errorf("the manifest is %+v, with the signature %s", m, m.Signature.JSON())
	}

	s, err := serving.ParseSignature([]byte(signature))
	require.NoError(t, err)
	o := pack(t, bundle.Manifest{Runtime: "command", Signature: s, Command: []string{"./serve"}}, fstest.MapFS{"serve": {Data: []byte("x"), Mode: 0o755}})
	if said := script(`
import json, sys
from pathlib import Path
from topsail import bundle
print(json.dumps(bundle.read(Path(sys.argv[1]).read_bytes()).manifest.signature.document(), ensure_ascii=False, separators=(",", ":")))`, o.Bundle); said != signature {
		t.Errorf("the SDK reads the signature %s", said)
	}

	o = pack(t, bundle.Manifest{Runtime: "command", Command: []string{"./serve", "x"}, Example: []byte(`{"a": [1]}`)},
		fstest.MapFS{"serve": {Data: []byte("x"), Mode: 0o755}, "größe/x": {}})
	if said := script(`
import sys
from pathlib import Path
from topsail import bundle
b = bundle.read(Path(sys.argv[1]).read_bytes())
print(b.digest, b.manifest.command, sorted(b.files))`, o.Bundle); said != o.Digest+" ('./serve', 'x') ['größe/x', 'serve']" {
		t.Errorf("the SDK reads %s", said)
	}
}
