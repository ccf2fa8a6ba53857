package bundle

import (
	"archive/zip"
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/topsail-serving/topsail/test/require"
)

func pack(t testing.TB, m Manifest, files fstest.MapFS) []byte {
	t.Helper()
	var buf bytes.Buffer
	require.NoError(t, Write(&buf, &m, files))
	return buf.Bytes()
}

func open(data []byte) (*Bundle, error) { return Open(bytes.NewReader(data), int64(len(data))) }

func TestUnpackACommand(t *testing.T) {
	data := pack(t, Manifest{Runtime: CommandRuntime, Command: []string{"bin/serve"}}, fstest.MapFS{
		"bin/serve": {Data: []byte("#!/bin/sh\n"), Mode: 0o644}, "data": {Data: []byte("x"), Mode: 0o600},
	})
	b, err := open(data)
	require.NoError(t, err)
	dir := filepath.Join(t.TempDir(), "new")
	require.NoError(t, b.Unpack(t.Context(), dir))
	for name, program := range map[string]bool{"bin/serve": true, "data": false, ManifestName: false} {
		info, err := os.Stat(filepath.Join(dir, name))
		if err != nil || (info.Mode()&0o100 != 0) != program {
			t.Errorf("%s: %v %v", name, info, err)
		}
	}
	if text, err := os.ReadFile(filepath.Join(dir, ManifestName)); err != nil || !bytes.Equal(text, b.ManifestText()) {
		t.Errorf("the manifest is %q: %v", text, err)
	}
}

func TestOpenSaysWhatIsWrongWithTheManifest(t *testing.T) {
	var buf bytes.Buffer
	z := zip.NewWriter(&buf)
	w, _ := z.Create(ManifestName)
	_, _ = w.Write([]byte(`{"format":7}`))
	z.Close()
	if _, err := open(buf.Bytes()); err == nil || !strings.Contains(err.Error(), "format 7") {
		t.Errorf("error is %v", err)
	}
}

func TestWriteChecks(t *testing.T) {
	var buf bytes.Buffer
	err := Write(&buf, &Manifest{Runtime: "python", Python: "3.11", Entry: "model.pkl"}, fstest.MapFS{})
	if err == nil || !strings.Contains(err.Error(), "neither a file") {
		t.Errorf("error is %v", err)
	}
}

func TestDigest(t *testing.T) {
	d, err := Digest(strings.NewReader("abc"))
	if err != nil || d != "sha256:ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad" {
		t.Errorf("digest is %s, %v", d, err)
	}
	if hex, err := ParseDigest(d); err != nil || "sha256:"+hex != d {
		t.Errorf("%q, %v", hex, err)
	}
	for _, s := range []string{"", "sha256:", "sha256:../../etc/passwd", strings.ToUpper(d), d[7:], d + "0", d + "\n", "md5:" + d[7:]} {
		if _, err := ParseDigest(s); err == nil {
			t.Errorf("%q is taken", s)
		}
	}
}

func FuzzOpen(f *testing.F) {
	f.Add(pack(f, Manifest{Runtime: CommandRuntime, Command: []string{"bin/serve"}}, fstest.MapFS{"bin/serve": {Data: []byte("x")}}))
	f.Add(pack(f, Manifest{Runtime: "python", Python: "3.11", Entry: "a:b"}, fstest.MapFS{"a.py": {Data: []byte("b = 1")}}))
	f.Fuzz(func(t *testing.T, data []byte) {
		b, err := open(data)
		if err != nil {
			return
		}
		if err := b.Manifest.Check(); err != nil {
			t.Fatalf("a manifest that is no good was taken: %v", err)
		}
		_ = b.Verify(t.Context())
	})
}
