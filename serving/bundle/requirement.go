package bundle

import (
	"fmt"
	"regexp"
	"strings"
)

// requirement is the form of a line that names a package: name[extras]specifiers;marker.
// Options, paths and URLs have other forms. Neither "$" nor a word that begins with "-"
// is in it, since pip would replace the one by a variable and take the other for an option.
var requirement = regexp.MustCompile(`^([A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?)` +
	`\s*(\[[A-Za-z0-9._, -]*\])?` +
	`\s*(\(?\s*` + specifier + `(?:\s*,\s*` + specifier + `)*\s*\)?)?` +
	`\s*(;(?:\s*[A-Za-z0-9_.,'"<>=!~()*+][A-Za-z0-9_.,'"<>=!~()*+-]*)+\s*)?$`)

const specifier = `(?:===|~=|==|!=|<=|>=|<|>)\s*[A-Za-z0-9][A-Za-z0-9_.*+!-]*`

var separators = regexp.MustCompile(`[-_.]+`)

func checkRequirement(line string) error {
	if len(line) > maxText || strings.ContainsAny(line, "\r\n\v\f\x00") {
		return fmt.Errorf("requirement %.60q is too long, or has several lines: give one package each", line)
	}
	if !requirement.MatchString(line) {
		return fmt.Errorf("requirement %q does not name a package as in \"scikit-learn==1.5.2\". "+
			"Options, paths and URLs are not allowed in bundles: put them into pip's own configuration on the nodes, "+
			"your own code into the bundle's files, a wheel of your own into an index or a wheelhouse", line)
	}
	return nil
}

// RequiredPackage is the package that a requirement names, in pip's spelling of names, and whether any of its versions
// will do. What is not a requirement names none.
func RequiredPackage(line string) (name string, any bool) {
	parts := requirement.FindStringSubmatch(line)
	if parts == nil || checkRequirement(line) != nil {
		return "", false
	}
	return separators.ReplaceAllString(strings.ToLower(parts[1]), "-"), parts[3] == ""
}

// normal is one spelling for all that mean the same to pip.
func normal(line string) string {
	parts := requirement.FindStringSubmatch(line)
	if parts == nil {
		return strings.Join(strings.Fields(line), " ")
	}
	name := separators.ReplaceAllString(strings.ToLower(parts[1]), "-")
	tight := strings.Join(strings.Fields(strings.ToLower(parts[2])+parts[3]), "")
	return name + tight + strings.Join(strings.Fields(parts[4]), " ")
}
