package deploy

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"
)

// rule is an alert or something recorded.
type rule struct {
	alert, record string
	expr          string
	text          string // all of it
}

var (
	ruleStart = regexp.MustCompile(`(?m)^      - (alert|record): (\S+)$`)
	exprBlock = regexp.MustCompile(`(?m)^        expr: (?:>-\n((?:          .*\n)+)|(.*)\n)`)
	grouped   = regexp.MustCompile(`\bby \(([^)]*)\)`)
)

// rules reads the rules, which are written in one form throughout.
func rules(t *testing.T) []rule {
	t.Helper()
	text := read(t, "prometheus/topsail.rules.yml")
	starts := ruleStart.FindAllStringSubmatchIndex(text, -1)
	var all []rule
	for i, at := range starts {
		end := len(text)
		if i+1 < len(starts) {
			end = starts[i+1][0]
		}
		one := rule{text: text[at[0]:end]}
		if kind, name := text[at[2]:at[3]], text[at[4]:at[5]]; kind == "alert" {
			one.alert = name
		} else {
			one.record = name
		}
		expr := exprBlock.FindStringSubmatch(one.text)
		if expr == nil {
			t.Fatalf("no expression in:\n%s", one.text)
		}
		one.expr = strings.Join(strings.Fields(expr[1]+expr[2]), " ")
		all = append(all, one)
	}
	if len(all) < 20 || strings.Count(text, "expr:") != len(all) {
		t.Fatalf("read %d rules of %d", len(all), strings.Count(text, "expr:"))
	}
	return all
}

// recorded is what the rules record, with its labels.
func recorded(all []rule) map[string][]string {
	labels := map[string][]string{}
	for _, r := range all {
		if by := grouped.FindStringSubmatch(r.expr); r.record != "" && by != nil {
			labels[r.record] = strings.Split(by[1], ", ")
		}
	}
	return labels
}

// anchor is what a page's address of a heading ends in.
func anchor(heading string) string { return strings.ToLower(heading) }

func read(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// TestTheFilesAreYAML reads them as Prometheus does, before what a test of the rules reads of their text.
func TestTheFilesAreYAML(t *testing.T) {
	for path, want := range map[string]string{
		"prometheus/topsail.rules.yml": "groups", "prometheus/topsail.rules.test.yml": "tests", "prometheus/scrape.yml": "scrape_configs",
	} {
		var file map[string]any
		if err := yaml.Unmarshal([]byte(read(t, path)), &file); err != nil {
			t.Errorf("%s: %v", path, err)
		} else if list, ok := file[want].([]any); !ok || len(list) == 0 {
			t.Errorf("%s has no %s", path, want)
		}
	}
}
