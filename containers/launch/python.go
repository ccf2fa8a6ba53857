//go:build unix

package launch

import (
	"context"
	"fmt"
	"os/exec"
	"strings"
	"time"

	"github.com/topsail-serving/topsail/serving/bundle"
)

const (
	newestMinor  = 25 // to look for when naming what is there
	probeTimeout = 10 * time.Second
)

// probe makes an interpreter say which one it is. A shim names the real one so.
const probe = "import sys; print('%d.%d' % sys.version_info[:2]); print(sys.executable)"

// PythonsIn finds interpreters in folders, by the first that has the version: python3.N,
// then python3 and python. It asks each interpreter once; so a finder is for one launch.
func PythonsIn(dirs []string) func(minor string) (path string, ok bool) {
	known := map[string]interpreter{}
	return func(minor string) (string, bool) {
		for _, name := range []string{"python" + minor, "python3", "python"} {
			for _, dir := range dirs {
				candidate, ok := findProgram(name, []string{dir})
				if !ok {
					continue
				}
				if _, ok := known[candidate]; !ok {
					known[candidate] = ask(candidate)
				}
				if found := known[candidate]; found.minor == minor {
					return found.path, true
				}
			}
		}
		return "", false
	}
}

// interpreter is what a candidate says of itself; empty if it does not work.
type interpreter struct{ minor, path string }

func ask(candidate string) interpreter {
	ctx, cancel := context.WithTimeout(context.Background(), probeTimeout)
	defer cancel()
	out, err := exec.CommandContext(ctx, candidate, "-I", "-c", probe).Output()
	minor, path, _ := strings.Cut(strings.TrimSpace(string(out)), "\n")
	if err != nil || path == "" {
		return interpreter{}
	}
	return interpreter{minor: minor, path: path}
}

// findPython refuses in plain words where there is no Python as the bundle needs it.
func (o *Options) findPython(m *bundle.Manifest) (string, error) {
	if path, ok := o.Pythons(m.Python); ok {
		return path, nil
	}
	var have []string
	for n := bundle.OldestMinor; n <= newestMinor; n++ {
		minor := fmt.Sprintf("3.%d", n)
		if _, ok := o.Pythons(minor); ok && minor != m.Python {
			have = append(have, minor)
		}
	}
	return "", m.CheckPython(have)
}
