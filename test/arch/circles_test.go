package arch

import (
	"go/ast"
	"go/build/constraint"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/topsail-serving/topsail/test/require"
)

// circles are the tags of tests that the gate leaves out; `make help` has a target for
// each. A file of tests has one of them at most, and all of its tests are in that circle.
var circles = []string{"smoke", "servers", "system", "bars", "faults", "edge"}

// platforms are the other tags in use.
var platforms = []string{"unix", "linux", "darwin", "dragonfly", "freebsd", "netbsd", "openbsd", "race"}

// shared are the files of test/servers whose names the gate's tests may use: Redis is
// the only real server that the gate starts.
var shared = []string{"redis.go", "ports.go", "server.go", "binary.go"}

// TestCircles checks that each file of tests is in one circle, and that those of the gate
// start no server but Redis.
func TestCircles(t *testing.T) {
	ofGate := declared(t, shared)
	tagged := map[string]int{}
	for _, file := range testFiles(t) {
		circle := circleOf(t, file)
		tagged[circle]++
		if circle != "" {
			continue
		}
		for name, line := range usedServers(t, file) {
			if !slices.Contains(ofGate, name) {
				t.Errorf("%s:%d: a test of the gate uses %s of the real servers: tag its file, e.g. //go:build servers", file.path, line, name)
			}
		}
	}
	for _, circle := range append(circles, "") {
		if tagged[circle] == 0 {
			t.Errorf("no file of tests is in circle %q", circle)
		}
	}
}

type testFile struct {
	path   string
	syntax *ast.File
	set    *token.FileSet
}

// testFiles are all files of tests, and those of the packages that only tests use.
func testFiles(t *testing.T) (all []testFile) {
	t.Helper()
	root := filepath.Join("..", "..")
	err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if entry.IsDir() {
			if skipped := []string{".git", "build", "bin", "node_modules", "dist", "testdata", "tools"}; slices.Contains(skipped, entry.Name()) {
				return fs.SkipDir
			}
			return nil
		}
		if strings.HasSuffix(path, "_test.go") {
			set := token.NewFileSet()
			syntax, err := parser.ParseFile(set, path, nil, parser.ParseComments)
			if err != nil {
				return err
			}
			rel, err := filepath.Rel(root, path)
			if err != nil {
				return err
			}
			all = append(all, testFile{filepath.ToSlash(rel), syntax, set})
		}
		return nil
	})
	require.NoError(t, err)
	return all
}

// circleOf is the circle that a file's build constraint names, "" for the gate.
func circleOf(t *testing.T, file testFile) (circle string) {
	t.Helper()
	for _, group := range file.syntax.Comments {
		for _, comment := range group.List {
			if comment.Pos() > file.syntax.Package || !constraint.IsGoBuild(comment.Text) {
				continue
			}
			expr, err := constraint.Parse(comment.Text)
			if err != nil {
				t.Errorf("%s: %v", file.path, err)
				continue
			}
			for _, tag := range tagsOf(expr) {
				switch {
				case slices.Contains(platforms, tag):
				case !slices.Contains(circles, tag):
					t.Errorf("%s: the tag %q is not one of %v or %v", file.path, tag, circles, platforms)
				case circle != "":
					t.Errorf("%s is in two circles, %s and %s", file.path, circle, tag)
				default:
					circle = tag
				}
			}
		}
	}
	return circle
}

func tagsOf(expr constraint.Expr) []string {
	switch x := expr.(type) {
	case *constraint.TagExpr:
		return []string{x.Tag}
	case *constraint.NotExpr:
		return tagsOf(x.X)
	case *constraint.AndExpr:
		return append(tagsOf(x.X), tagsOf(x.Y)...)
	case *constraint.OrExpr:
		return append(tagsOf(x.X), tagsOf(x.Y)...)
	}
	return nil
}

// usedServers are the names of test/servers that a file uses, with a line of each. The
// harness of whole clusters counts as one.
func usedServers(t *testing.T, file testFile) map[string]int {
	t.Helper()
	used := map[string]int{}
	local := ""
	for _, spec := range file.syntax.Imports {
		path, err := strconv.Unquote(spec.Path.Value)
		require.NoError(t, err)
		switch path {
		case module + "/test/servers":
			local = "servers"
			if spec.Name != nil {
				local = spec.Name.Name
			}
		case module + "/test/harness":
			used["test/harness"] = file.set.Position(spec.Pos()).Line
		}
	}
	if local == "" {
		return used
	}
	ast.Inspect(file.syntax, func(n ast.Node) bool {
		if selector, ok := n.(*ast.SelectorExpr); ok {
			if pkg, ok := selector.X.(*ast.Ident); ok && pkg.Name == local {
				used[selector.Sel.Name] = file.set.Position(selector.Pos()).Line
			}
		}
		return true
	})
	return used
}

// declared are the exported names of some files of test/servers.
func declared(t *testing.T, files []string) (names []string) {
	t.Helper()
	for _, name := range files {
		path := filepath.Join("..", "servers", name)
		if _, err := os.Stat(path); err != nil {
			t.Fatal(err)
		}
		syntax, err := parser.ParseFile(token.NewFileSet(), path, nil, 0)
		require.NoError(t, err)
		for object := range syntax.Scope.Objects {
			if ast.IsExported(object) {
				names = append(names, object)
			}
		}
	}
	return names
}
