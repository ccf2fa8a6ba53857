package python

import (
	"io/fs"
	"testing"
)

func TestSDKIsWhole(t *testing.T) {
	for _, name := range []string{"topsail/__init__.py", "topsail/protocol/__init__.py", "topsail/version.py"} {
		if text, err := fs.ReadFile(SDK(), name); err != nil || name == "topsail/version.py" && len(text) == 0 {
			t.Errorf("%s: %v", name, err)
		}
	}
}
