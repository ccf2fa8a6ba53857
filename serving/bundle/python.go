package bundle

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// OldestMinor is the oldest Python that Topsail's runtime works with, 3.OldestMinor.
const OldestMinor = 10

// CheckPython says in plain words that the bundle needs a Python that is not in have,
// which lists versions as MAJOR.MINOR, or nil. A bundle without Python needs none.
func (m *Manifest) CheckPython(have []string) error {
	if m.Python == "" || slices.Contains(have, m.Python) {
		return nil
	}
	if len(have) == 0 {
		return fmt.Errorf("this bundle needs Python %s, and no usable Python was found here: "+
			"install Python %s on this node, with its venv module, on the PATH", m.Python, m.Python)
	}
	return fmt.Errorf("this bundle needs Python %s, and here is %s. A model that one version of Python saved may not load in another: "+
		"install Python %s on this node, or build the bundle again with a version that is installed here", m.Python, and(have), m.Python)
}

func and(versions []string) string {
	versions = slices.Clone(versions)
	slices.SortFunc(versions, func(a, b string) int { return minorNumber(a) - minorNumber(b) })
	last := len(versions) - 1
	if last == 0 {
		return versions[0]
	}
	return strings.Join(versions[:last], ", ") + " and " + versions[last]
}

// minorNumber is the N of "3.N".
func minorNumber(version string) int {
	n, _ := strconv.Atoi(strings.TrimPrefix(version, "3.")) // what is not a version sorts first
	return n
}
