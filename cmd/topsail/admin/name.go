package admin

import (
	"strings"

	"github.com/topsail-serving/topsail/serving"
)

// versionArg reads a version as MODEL:VERSION or as two arguments, and returns the
// arguments after it.
func versionArg(args []string) (serving.ModelID, []string, error) {
	if len(args) > 0 {
		if model, version, ok := strings.Cut(args[0], ":"); ok && model != "" && version != "" {
			return serving.ModelID{Model: model, Version: version}, args[1:], nil
		}
	}
	if len(args) < 2 || args[0] == "" || args[1] == "" || strings.Contains(args[0], ":") {
		return serving.ModelID{}, nil, misused("name a version as MODEL:VERSION, such as wine-forest:1")
	}
	return serving.ModelID{Model: args[0], Version: args[1]}, args[2:], nil
}

// oneVersion is versionArg for commands that take nothing else.
func oneVersion(args []string) (serving.ModelID, error) {
	id, rest, err := versionArg(args)
	if err == nil && len(rest) > 0 {
		err = misused("name one version only, without %q", strings.Join(rest, " "))
	}
	return id, err
}

func versionPath(id serving.ModelID, more ...string) []string {
	return append([]string{"models", id.Model, "versions", id.Version}, more...)
}
