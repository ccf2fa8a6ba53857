package bundle

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
)

// EnvironmentID names what the bundle needs around it: bundles that need the same Python
// and the same packages have one id, however they spell and order these, and share one
// environment on each node. It is 16 hexadecimal digits.
func EnvironmentID(m *Manifest) string {
	lines := make([]string, len(m.Requirements))
	for i, line := range m.Requirements {
		lines[i] = normal(line)
	}
	slices.Sort(lines)
	hash := sha256.New()
	fmt.Fprintf(hash, "python %s\n", m.Python)
	for _, line := range slices.Compact(lines) {
		fmt.Fprintf(hash, "%s\n", line)
	}
	return hex.EncodeToString(hash.Sum(nil)[:8])
}
