package api

import (
	"regexp"
	"slices"
	"strings"
	"testing"
)

// What is served is what the contract has, path by path and method by method.
func TestRoutesAreThoseOfTheContract(t *testing.T) {
	var want, got []string
	path, name := "", ""
	paths, _, _ := strings.Cut(string(contract), "\ncomponents:")
	_, paths, _ = strings.Cut(paths, "\npaths:\n")
	aPath, aMethod := regexp.MustCompile(`^  (/\S*):$`), regexp.MustCompile(`^    (get|put|post|patch|delete):$`)
	for line := range strings.Lines(paths) {
		line = strings.TrimSuffix(line, "\n")
		if m := aPath.FindStringSubmatch(line); m != nil {
			path = m[1]
		}
		if m := aMethod.FindStringSubmatch(line); m != nil {
			name = strings.ToUpper(m[1]) + " " + path
			want = append(want, name)
		}
	}
	a := having(t).api
	for _, route := range slices.Concat(a.catalogRoutes(), a.liveRoutes()) {
		got = append(got, route.pattern)
	}
	slices.Sort(want)
	slices.Sort(got)
	if len(want) < 50 || !slices.Equal(got, want) {
		for _, name := range want {
			if !slices.Contains(got, name) {
				t.Errorf("%s is not served", name)
			}
		}
		for _, name := range got {
			if !slices.Contains(want, name) {
				t.Errorf("%s is not in the contract", name)
			}
		}
		t.Errorf("%d routes, and %d in the contract", len(got), len(want))
	}
}
