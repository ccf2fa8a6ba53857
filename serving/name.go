package serving

import (
	"fmt"
	"regexp"
	"slices"
)

var (
	appName     = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,62}$`)
	modelName   = regexp.MustCompile(`^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$`)
	versionName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._+-]{0,62}$`)

	// reservedApps are first path segments that belong to Topsail itself.
	reservedApps = []string{"admin", "api", "ui", "v2", "metrics", "health"}
	// newlyReserved are those that apps could have before: one that has keeps it.
	newlyReserved = []string{"v1", "openai"}
)

// CheckAppName says why s cannot name an app, or nil.
func CheckAppName(s string) error {
	if !appName.MatchString(s) {
		return fmt.Errorf("app name %q: use 1 to 63 letters, digits, '.', '_' or '-', beginning with a letter or digit", s)
	}
	if slices.Contains(reservedApps, s) {
		return fmt.Errorf("app name %q is reserved", s)
	}
	return nil
}

// NewlyReserved says whether an app of this name may stay, and may not be made: paths of the query port
// begin with it.
func NewlyReserved(app string) bool { return slices.Contains(newlyReserved, app) }

// CheckModelName says why s cannot name a model, or nil.
func CheckModelName(s string) error {
	if !modelName.MatchString(s) {
		return fmt.Errorf("model name %q: use 1 to 63 lower-case letters, digits or '-', beginning and ending with a letter or digit", s)
	}
	return nil
}

// CheckVersion says why s cannot name a version, or nil.
func CheckVersion(s string) error {
	if !versionName.MatchString(s) {
		return fmt.Errorf("version %q: use 1 to 63 letters, digits, '.', '_', '+' or '-', beginning with a letter or digit", s)
	}
	return nil
}
