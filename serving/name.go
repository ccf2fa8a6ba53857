package serving

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"unicode/utf8"
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

// MaxDescription bounds the descriptions of apps and versions, in bytes.
const MaxDescription = 1000

// checkDescription says what is wrong with a description, or nil. It is shown to clients that
// sees what it is of.
func checkDescription(text string) error {
	if len(text) > MaxDescription {
		return fmt.Errorf("description has %d bytes; at most %d are allowed", len(text), MaxDescription)
	}
	if !utf8.ValidString(text) {
		return errors.New("description must be text in UTF-8")
	}
	return nil
}
