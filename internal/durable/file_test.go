package durable

import (
	"os"
	"path/filepath"
	"testing"
)

func read(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// names are those in a folder.
func names(t *testing.T, dir string) (all []string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		all = append(all, e.Name())
	}
	return all
}

func TestWriteFileReplaces(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "state")
	for _, content := range []string{"one", "", "three"} {
		if err := os.WriteFile(path+".new", []byte("what broke off"), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		if got := read(t, path); got != content {
			t.Errorf("it has %q, want %q", got, content)
		}
	}
	info, err := os.Stat(path)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("permissions %v, %v", info.Mode(), err)
	}
	if got := names(t, dir); len(got) != 1 {
		t.Errorf("the folder has %q", got)
	}
}

// What fails leaves what was there, and nothing else.
func TestWriteFileFails(t *testing.T) {
	dir := t.TempDir()
	taken := filepath.Join(dir, "taken")
	if err := os.MkdirAll(filepath.Join(taken, "file"), 0o700); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{taken, filepath.Join(dir, "missing", "file")} {
		if err := WriteFile(path, []byte("new"), 0o600); err == nil {
			t.Errorf("%s was written", path)
		}
	}
	if got := names(t, dir); len(got) != 1 {
		t.Errorf("the folder has %q", got)
	}
}

func TestRename(t *testing.T) {
	dir := t.TempDir()
	from, to := filepath.Join(dir, "from"), filepath.Join(dir, "to")
	for path, content := range map[string]string{from: "new", to: "old"} {
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := Rename(from, to); err != nil {
		t.Fatal(err)
	}
	if got := read(t, to); got != "new" {
		t.Errorf("it has %q", got)
	}
	if err := Rename(from, to); !os.IsNotExist(err) {
		t.Errorf("what is not there was renamed: %v", err)
	}
	if got := read(t, to); got != "new" {
		t.Errorf("it has %q", got)
	}
}
