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

func TestADamagedEnvironmentIsBuiltAgain(t *testing.T) {
	o := requiring(t, "tiny==1.0")
	o.Environ = with(o.Environ, "PIP_FIND_LINKS", wheel(t, "tiny", "1.0"))
	run(t, o)
	found, err := filepath.Glob(filepath.Join(o.Work, "environments", "*", "lib", "python*", "site-packages", "tiny.py"))
	if err != nil || len(found) != 1 {
		t.Fatal(found, err)
	}
	require.NoError(t, flip(found[0]))
	run(t, o) // the one before has ended at once
	if text, err := os.ReadFile(found[0]); err != nil || string(text) != "version = '1.0'\n" {
		t.Errorf("it is %q, %v", text, err)
	}
	if log := o.Log.(*journal.Journal).String(); strings.Count(log, "tiny.py has changed since it was built") != 1 {
		t.Errorf("the log is %q", log)
	}
}
