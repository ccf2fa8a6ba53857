// Package release says which release of Topsail this program is.
package release

import (
	"cmp"
	"runtime/debug"
	"strings"
)

// Version is that of this program.
func Version() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "unknown"
	}
	return info.Main.Version
}

// Agent is the User-Agent of this program's requests to the management API, which versions
// that it deploys keep.
func Agent() string { return "topsail/" + cmp.Or(strings.Trim(Version(), "()"), "unknown") }
