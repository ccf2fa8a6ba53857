package deploy

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/topsail-serving/topsail/cmd/topsail/config"
)

// pages are those that people read, by path.
func pages(t *testing.T) map[string]string {
	t.Helper()
	all := map[string]string{}
	for _, pattern := range []string{"../*.md", "../docs/*.md", "../docs/adr/*.md", "../nomad/*.md", "../nomad/policies/*.md"} {
		paths, err := filepath.Glob(pattern)
		if err != nil || len(paths) == 0 {
			t.Fatalf("%s: no pages, %v", pattern, err)
		}
		for _, path := range paths {
			all[path] = read(t, path)
		}
	}
	return all
}

var (
	link     = regexp.MustCompile(`\]\(([^):]+)\)`)
	headings = regexp.MustCompile(`(?m)^#+ (.+)$`)
	unlinked = regexp.MustCompile("[^a-z0-9 _-]")
)

// anchors are what addresses of a page's headings end in.
func anchors(page string) []string {
	var all []string
	for _, h := range headings.FindAllStringSubmatch(page, -1) {
		all = append(all, strings.ReplaceAll(unlinked.ReplaceAllString(strings.ToLower(h[1]), ""), " ", "-"))
	}
	return all
}

func TestLinksLeadSomewhere(t *testing.T) {
	all := pages(t)
	for path, text := range all {
		for _, found := range link.FindAllStringSubmatch(text, -1) {
			file, heading, _ := strings.Cut(found[1], "#")
			to := path
			if file != "" {
				to = filepath.Join(filepath.Dir(path), file)
			}
			if _, err := os.Stat(to); err != nil {
				t.Errorf("%s: %v", path, err)
			}
			if heading != "" && !slices.Contains(anchors(all[to]), heading) {
				t.Errorf("%s: %s has no heading %s", path, to, heading)
			}
		}
	}
}

// TestSettingsAreExplained finds settings that docs/configuration.md leaves out.
func TestSettingsAreExplained(t *testing.T) {
	page := read(t, "../docs/configuration.md")
	for _, key := range config.Keys() {
		name := key.Name[strings.LastIndex(key.Name, ".")+1:]
		if !regexp.MustCompile(`\b` + name + `\b`).MatchString(page) {
			t.Errorf("docs/configuration.md does not explain %s: %s", key.Name, key.Help)
		}
	}
}

func TestDecisionsAreListed(t *testing.T) {
	index := read(t, "../docs/adr/README.md")
	paths, err := filepath.Glob("../docs/adr/0*.md")
	if err != nil || len(paths) == 0 {
		t.Fatalf("no decisions: %v", err)
	}
	for _, path := range paths {
		_, title, _ := strings.Cut(strings.SplitN(read(t, path), "\n", 2)[0], ". ")
		if want := "[" + title + "](" + filepath.Base(path) + ")"; !strings.Contains(index, want) {
			t.Errorf("docs/adr/README.md lacks %s", want)
		}
	}
}
