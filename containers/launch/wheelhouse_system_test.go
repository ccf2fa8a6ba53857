//go:build unix && system

package launch

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/topsail-serving/topsail/test/journal"
	"github.com/topsail-serving/topsail/test/require"
)

func TestAnEnvironmentIsCarriedToANodeWithoutAnIndex(t *testing.T) {
	t.Parallel()
	node := requiring(t, "tiny==1.0")
	here := node
	here.Environ = append([]string{"PIP_FIND_LINKS=" + wheel(t, "tiny", "1.0")}, node.Environ...)
	out := filepath.Join(t.TempDir(), "wheels.zip")
	require.NoError(t, PackEnvironment(t.Context(), here, out))
	if beside, err := os.ReadDir(filepath.Dir(out)); err != nil || len(beside) != 1 {
		t.Errorf("there is %v, %v", beside, err)
	}
	var id string
	for range 2 { // the second replaces the first
		var err error
		if id, err = LoadEnvironment(t.Context(), out, node.Work); err != nil {
			t.Fatal(err)
		}
	}
	damaged := filepath.Join(node.Work, "wheelhouses", id, "tiny-1.0-py3-none-any.whl")
	require.NoError(t, flip(damaged))
	if text := refused(t, node); !strings.Contains(text, filepath.Base(damaged)+" has changed; load it again") {
		t.Error(text)
	}
	if _, err := LoadEnvironment(t.Context(), out, node.Work); err != nil {
		t.Fatal(err)
	}
	image := run(t, node)
	if want := filepath.Join(node.Work, "environments", id, "bin", "python"); image.Path != want {
		t.Errorf("it runs %s, want %s", image.Path, want)
	}
	if log := node.Log.(*journal.Journal).String(); !strings.Contains(log, "from the wheelhouse") {
		t.Errorf("log is %s", log)
	}
}
