package arch

import (
	"bytes"
	"encoding/json"
	"errors"
	"go/ast"
	"go/parser"
	"go/scanner"
	"go/token"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/topsail-serving/topsail/test/require"
)

const (
	manyFiles = 20  // in one package
	slack     = 100 // lines that may go before the number is lowered
)

// TestWeight holds what the product weighs to the numbers of weight.txt: lines of code that ship, by language,
// without tests, generated code, blanks and comments, and the files of packages that have more than 20.
func TestWeight(t *testing.T) {
	limits, counts := readLimits(t), counted(t)
	for _, name := range slices.Sorted(maps.Keys(counts)) {
		limit, known := limits[name]
		switch n := counts[name]; {
		case !known:
			t.Errorf("%s: %d is not in weight.txt: a package of more than %d files is split", name, n, manyFiles)
		case n > limit:
			t.Errorf("%s: %d is more than %d. Make something lighter, or add a line to weight.txt: +%d NOUN: what it is", name, n, limit, n-limit)
		case n < limit-slack || n < limit && strings.HasPrefix(name, "files "):
			t.Errorf("%s: %d is less than %d. Keep what is won: write %d into weight.txt, and drop the lines below it", name, n, limit, n)
		}
	}
	for name := range limits {
		if _, still := counts[name]; !still {
			t.Errorf("%s is in weight.txt, and is not there any more: drop its line", name)
		}
	}
}

// readLimits reads weight.txt: a line has a name and a number, and those below it that begin with + raise it.
func readLimits(t *testing.T) map[string]int {
	t.Helper()
	text, err := os.ReadFile("weight.txt")
	require.NoError(t, err)
	limits, raised := map[string]int{}, regexp.MustCompile(`^\+(\d+) [^:]+: \S.*$`)
	name := ""
	for line := range strings.Lines(string(text)) {
		line = strings.TrimSpace(line)
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		if by := raised.FindStringSubmatch(line); by != nil {
			n, _ := strconv.Atoi(by[1])
			limits[name] += n
			continue
		}
		space := strings.LastIndexByte(line, ' ')
		n, err := strconv.Atoi(line[space+1:])
		if space < 0 || err != nil {
			t.Fatalf("weight.txt: %q is neither NAME NUMBER nor +NUMBER NOUN: WHAT", line)
		}
		name = line[:space]
		limits[name] = n
	}
	return limits
}

func counted(t *testing.T) map[string]int {
	t.Helper()
	counts := map[string]int{}
	for _, p := range shipped(t) {
		for _, name := range append(p.GoFiles, p.CgoFiles...) {
			counts["go"] += goLines(t, filepath.Join(p.Dir, name))
		}
		for _, name := range p.EmbedFiles {
			switch filepath.Ext(name) {
			case ".lua":
				counts["lua"] += lines(t, filepath.Join(p.Dir, name), "--")
			case ".tmpl":
				counts["templates"] += lines(t, filepath.Join(p.Dir, name), "#")
			}
		}
		if len(p.GoFiles) > manyFiles {
			counts["files "+strings.TrimPrefix(p.ImportPath, module+"/")] = len(p.GoFiles)
		}
	}
	root := filepath.Join("..", "..")
	for _, name := range found(t, filepath.Join(root, "containers", "python", "src"), ".py") {
		counts["python"] += pythonLines(t, name)
	}
	for _, name := range found(t, filepath.Join(root, "web", "ui", "src"), ".ts", ".svelte") {
		if !strings.HasSuffix(name, ".test.ts") {
			counts["ui"] += lines(t, name, "//", "/*", "*", "<!--")
		}
	}
	for _, name := range found(t, filepath.Join(root, "containers", "jvm"), ".java") {
		if strings.Contains(name, "/src/main/") {
			counts["java"] += lines(t, name, "//", "/*", "*")
		}
	}
	return counts
}

// goPackage is what go list says of one.
type goPackage struct {
	ImportPath, Dir               string
	GoFiles, CgoFiles, EmbedFiles []string
}

// shipped are the packages of the program, of the library and of containers in Go.
func shipped(t *testing.T) []goPackage {
	t.Helper()
	out, err := exec.Command("go", "list", "-deps", "-json=ImportPath,Dir,GoFiles,CgoFiles,EmbedFiles", module+"/cmd/topsail", module+"/cmd/libtopsail", module+"/containers/...").Output()
	if err != nil {
		t.Fatalf("go list: %v", err)
	}
	var ours []goPackage
	for from := json.NewDecoder(bytes.NewReader(out)); ; {
		var p goPackage
		err := from.Decode(&p)
		switch {
		case errors.Is(err, io.EOF):
			return ours
		case err != nil:
			t.Fatalf("go list: %v", err)
		case strings.HasPrefix(p.ImportPath, module+"/"):
			ours = append(ours, p)
		}
	}
}

// found are the files below a folder whose names end in one of these ways.
func found(t *testing.T, folder string, endings ...string) []string {
	t.Helper()
	var names []string
	for _, name := range files(t, folder) {
		if slices.Contains(endings, filepath.Ext(name)) {
			names = append(names, name)
		}
	}
	if len(names) == 0 {
		t.Fatalf("%s has no files %v", folder, endings)
	}
	return names
}

// goLines are the lines with a token on them.
func goLines(t *testing.T, name string) int {
	text := read(t, name)
	if file, err := parser.ParseFile(token.NewFileSet(), name, text, parser.ParseComments|parser.PackageClauseOnly); err != nil || ast.IsGenerated(file) {
		return 0
	}
	set := token.NewFileSet()
	file := set.AddFile(name, -1, len(text))
	var s scanner.Scanner
	s.Init(file, text, nil, 0)
	n, last := 0, 0
	for {
		pos, kind, written := s.Scan()
		if kind == token.EOF {
			return n
		}
		if kind == token.SEMICOLON && written == "\n" {
			continue // that the scanner has put in
		}
		first := file.Line(pos)
		end := first + strings.Count(written, "\n")
		n += end - max(first-1, last)
		last = end
	}
}

// pythonLines are the lines of Python that are neither blank, comments nor parts of docstrings.
func pythonLines(t *testing.T, name string) int {
	text := string(read(t, name))
	text = regexp.MustCompile(`(?ms)^[ \t]*[rb]?""".*?"""[ \t]*$`).ReplaceAllString(text, "")
	return linesOf(text, "#")
}

func lines(t *testing.T, name string, comments ...string) int {
	return linesOf(string(read(t, name)), comments...)
}

// linesOf are those that are not blank and do not begin as a comment does.
func linesOf(text string, comments ...string) int {
	n := 0
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		if line != "" && !slices.ContainsFunc(comments, func(c string) bool { return strings.HasPrefix(line, c) }) {
			n++
		}
	}
	return n
}

func read(t *testing.T, name string) []byte {
	t.Helper()
	text, err := os.ReadFile(name)
	require.NoError(t, err)
	return text
}
