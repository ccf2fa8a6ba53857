package manage

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"github.com/topsail-serving/topsail/containers/launch"
	"github.com/topsail-serving/topsail/serving/bundle"
)

// newestMinor of Python 3 is looked for when saying which ones there are.
const newestMinor = 25

// checkBundle says why a bundle cannot run where Python has these versions; none are
// those that PATH leads to on this machine.
func checkBundle(pythons []string) func(manifest json.RawMessage) error {
	find := launch.PythonsIn(filepath.SplitList(os.Getenv("PATH")))
	return func(text json.RawMessage) error {
		m, err := bundle.ParseManifest(text)
		if err != nil {
			return err
		}
		have := pythons
		if _, ok := find(m.Python); ok && len(have) == 0 {
			return nil
		}
		for n := bundle.OldestMinor; n <= newestMinor && len(pythons) == 0 && m.Python != ""; n++ {
			if _, ok := find(fmt.Sprintf("3.%d", n)); ok {
				have = append(have, fmt.Sprintf("3.%d", n))
			}
		}
		return m.CheckPython(slices.Clip(have))
	}
}
