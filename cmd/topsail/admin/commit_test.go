package admin

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

func TestCheckedOut(t *testing.T) {
	folder := t.TempDir()
	t.Setenv("HOME", folder)
	t.Setenv("GIT_CEILING_DIRECTORIES", filepath.Dir(folder))
	if got := checkedOut(t.Context(), folder); got != "" {
		t.Errorf("without git it is %q", got)
	}
	git(t, folder, "init", "-q")
	if got := checkedOut(t.Context(), folder); got != "" {
		t.Errorf("without a commit it is %q", got)
	}
	writeFile(t, filepath.Join(folder, "model.py"), "1")
	git(t, folder, "add", ".")
	git(t, folder, "-c", "user.name=a", "-c", "user.email=a@b", "commit", "-q", "-m", "first")
	git(t, folder, "-c", "user.name=a", "-c", "user.email=a@b", "tag", "-a", "v1", "-m", "v1")
	clean := checkedOut(t.Context(), folder)
	if !regexp.MustCompile(`^[0-9a-f]{40}$`).MatchString(clean) {
		t.Errorf("got %q", clean)
	}
	writeFile(t, filepath.Join(folder, "model.py"), "2")
	if got := checkedOut(t.Context(), folder); got != clean+"-dirty" {
		t.Errorf("with a change it is %q", got)
	}
}

// TestTellsCommit holds that what deploys versions says of which commit they are.
func TestTellsCommit(t *testing.T) {
	f := newFake(t)
	f.here(t)
	file := filepath.Join(t.TempDir(), "topsail.toml")
	writeFile(t, file, "[[model]]\nname = \"m\"\nversion = \"1\"\ninput_type = \"doubles\"\ncommand = [\"serve\"]\n")
	f.answer("POST /api/v1/models/m/versions?commit=c1", answer{status: 201, body: `{"version": "1", "input_type": "doubles", "replicas": 0}`})
	f.answer("POST /api/v1/catalog?commit=c1&dry_run=true", answer{status: 200, body: `{"changes": [{"action": "create", "kind": "version", "name": "m:1"}], "notes": []}`})
	f.answer("POST /api/v1/catalog?commit=c1", answer{status: 200, body: `{"changes": [], "notes": []}`})
	for _, command := range []string{
		"version create m:1 --input-type doubles --commit c1 -- serve", "deploy m --version 1 --input-type doubles --dir /srv --wait 0 --commit c1 --image i", "apply --yes --commit c1 -f " + file,
	} {
		if r := f.run(t, strings.Fields(command)...); r.status != 0 {
			t.Errorf("%s: %s", command, r.err)
		}
	}
	for _, a := range f.asked {
		if agent := a.header.Get("User-Agent"); !strings.HasPrefix(agent, "topsail/") {
			t.Errorf("the client calls itself %q", agent)
		}
	}
}

func git(t *testing.T, folder string, args ...string) {
	t.Helper()
	c := exec.CommandContext(t.Context(), "git", args...)
	c.Dir = folder
	if out, err := c.CombinedOutput(); err != nil {
		t.Fatalf("git %v: %v: %s", args, err, out)
	}
}

func writeFile(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}
