package arch

import (
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"unicode"
)

// banned are the words of the table in CONTRIBUTING.md that are wrong wherever they stand,
// and what to write instead. The table has others, such as "turn" and "place", which also
// have right meanings: those are for reviews.
var banned = map[string]string{
	"rehearse": "dry run", "rehearsed": "dry run", "rehearses": "dry run", "rehearsal": "dry run, preview", "rehearsals": "dry runs",
	"shelf": "bundle cache, bundle store", "shelves": "bundle caches",
	"backlog of queries": "cold-start queue",
	"ration":             "quota", "rations": "quotas", "rationed": "limited by a quota", "rationing": "a quota",
	"guest": "hosted model", "guests": "hosted models",
	"poison": "rejected record", "poisoned": "rejected",
	"ask again": "retry", "asks again": "retries", "asked again": "retried", "asking again": "a retry",
	"came again": "redelivered", "comes again": "is redelivered",
	"in hand": "in flight, in progress",
	"is away": "is unavailable", "are away": "are unavailable", "was away": "was unavailable", "were away": "were unavailable",
	"trouble": "condition",
	"belief":  "membership", "believed": "trusted",
	"reign": "term, leadership", "reigns": "terms",
	"lineage": "epoch history",
	"pace":    "concurrency limit, latency estimate, rate",
	"no json": "not valid JSON",
	"mend":    "correct, repair", "mends": "corrects, repairs", "mended": "corrected, repaired", "mending": "repair",
	"nobody": "the role", "somebody": "the role", "anybody": "the role", "everybody": "the role", "whom": "the role", "whoever": "the role",
	"for want of": "for lack of",
}

// right are the places where such a word is right: names that are stored or public.
var right = map[string][]string{
	"bench/bars/options.go":                    {"pace"},                       // a case of make bench
	"bench/bars/pace.go":                       {"pace"},                       // the same
	"bench/bars/priority.go":                   {"pace"},                       // its models
	"docs/streams.md":                          {"pace", "trouble"},            // that case; a member of /streams
	"docs/metrics.md":                          {"trouble", "poison"},          // that member; names of alarms
	"docs/operations.md":                       {"trouble", "shelf", "poison"}, // the same; a folder on disk
	"cmd/topsail/local/bundlecache.go":         {"shelf"},                      // that folder
	"internal/adapter/redisstore/file.go":      {"lineage"},                    // a member of the snapshot on disk
	"internal/adapter/redisstore/reading.go":   {"lineage"},                    // a field of the catalog in Redis
	"stream/status.go":                         {"trouble"},                    // that member
	"containers/intact/repair.go":              {"mend"},                       // the ending of a folder on disk
	"deploy/prometheus/topsail.rules.yml":      {"poison"},                     // names of alarms
	"deploy/prometheus/topsail.rules.test.yml": {"poison"},                     // the same
}

// TestWords holds banned words out of programs in Go with their help and errors, the docs,
// the document of the API and the web UI.
func TestWords(t *testing.T) {
	root, read := os.DirFS(filepath.Join("..", "..")), 0
	used := map[string]bool{}
	err := fs.WalkDir(root, ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if entry.IsDir() {
			if skipped := []string{".git", "build", "bin", "node_modules", "dist", "testdata", "test"}; slices.Contains(skipped, entry.Name()) {
				return fs.SkipDir
			}
			return nil
		}
		if !worded(name) {
			return nil
		}
		read++
		text, err := fs.ReadFile(root, name)
		if err != nil {
			return err
		}
		for _, found := range wrong(string(text)) {
			if slices.Contains(right[name], found.words) {
				used[name+found.words] = true
				continue
			}
			t.Errorf("%s:%d: %q: write %s", name, found.line, found.words, banned[found.words])
		}
		return nil
	})
	if err != nil || read < 500 {
		t.Fatalf("read %d files: %v", read, err)
	}
	for name, words := range right {
		for _, w := range words {
			if !used[name+w] {
				t.Errorf("%s does not say %q any more: remove it from the list", name, w)
			}
		}
	}
}

// worded says whether people read the words of a file. CHANGELOG.md says what was, and
// CONTRIBUTING.md has the table.
func worded(name string) bool {
	switch filepath.Ext(name) {
	case ".go":
		return !strings.HasSuffix(name, "_test.go")
	case ".md":
		return name != "CHANGELOG.md" && name != "CONTRIBUTING.md"
	case ".py":
		return !strings.Contains(name, "/tests/")
	case ".yml", ".json":
		return strings.HasPrefix(name, "deploy/")
	case ".svelte", ".ts":
		return strings.HasPrefix(name, "web/ui/src/") && name != "web/ui/src/api/schema.ts" // which is generated
	}
	return name == "web/api/openapi.yaml" || name == "Makefile"
}

// wrong are the banned words of a text, in lower case. A word of an identifier counts, and
// so do words that a line break parts.
func wrong(text string) (found []word) {
	all := split(text)
	for i, first := range all {
		phrase := ""
		for k, next := range all[i:min(i+3, len(all))] {
			if k > 0 && !next.follows {
				break
			}
			phrase = strings.TrimSpace(phrase + " " + next.words)
			if banned[phrase] != "" {
				found = append(found, word{line: first.line, words: phrase})
			}
		}
	}
	return found
}

type word struct {
	line    int
	words   string
	follows bool // the word before it, in one sentence
}

// split are the words of a text and of its identifiers.
func split(text string) (words []word) {
	line, start, last, follows := 1, -1, ' ', false
	for i, r := range text + "\n" {
		if start >= 0 && (!unicode.IsLetter(r) || unicode.IsUpper(r) && unicode.IsLower(last)) {
			words = append(words, word{line, strings.ToLower(text[start:i]), follows})
			start, follows = -1, true
		}
		switch {
		case start < 0 && unicode.IsLetter(r):
			start = i
		case start < 0 && !strings.ContainsRune(" \t\n/*\"+`", r):
			follows = false
		}
		if r == '\n' {
			line++
		}
		last = r
	}
	return words
}

func TestWrongWords(t *testing.T) {
	for text, want := range map[string]string{
		"a guest":                        "guest",
		"openShelf(guestVersion)":        "shelf guest",
		"// the batch in\n// hand":       "in hand",
		"http.NoBody, itself, recommend": "",
		"It is for want of room":         "for want of",
		"is no JSON":                     "no json",
		"(plan.Asks, Again)":             "",
	} {
		var got []string
		for _, w := range wrong(text) {
			got = append(got, w.words)
		}
		if strings.Join(got, " ") != want {
			t.Errorf("%q has %q, want %q", text, got, want)
		}
	}
}
