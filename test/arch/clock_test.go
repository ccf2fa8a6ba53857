package arch

import (
	"bufio"
	"fmt"
	"go/ast"
	"maps"
	"os"
	"path"
	"slices"
	"strings"
	"testing"
)

// clocks are the calls that wait for a clock or measure with it.
var clocks = map[string][]string{
	"time":    {"Sleep", "Since", "Until", "After", "AfterFunc", "Tick", "NewTicker", "NewTimer"},
	"context": {"WithTimeout", "WithTimeoutCause", "WithDeadline", "WithDeadlineCause"},
}

// TestClock counts the calls of clocks that tests of the gate reach outside a bubble of
// testing/synctest. clock.txt has the number that each file still has: it may only fall.
func TestClock(t *testing.T) {
	packages := map[string][]testFile{}
	for _, file := range testFiles(t) {
		if circleOf(t, file) == "" {
			packages[path.Dir(file.path)] = append(packages[path.Dir(file.path)], file)
		}
	}
	found := map[string][]string{}
	for _, files := range packages {
		maps.Copy(found, realClocks(files))
	}
	allowed := allowedClocks(t)
	for _, name := range slices.Sorted(maps.Keys(found)) {
		if got, want := len(found[name]), allowed[name]; got > want {
			t.Errorf("%s has %d calls of a real clock, and %d in test/arch/clock.txt: put them into a bubble, or tag the file (docs/testing.md):\n\t%s",
				name, got, want, strings.Join(found[name], "\n\t"))
		}
	}
	for name, want := range allowed {
		if got := len(found[name]); got < want {
			t.Errorf("%s has %d calls of a real clock: write that into test/arch/clock.txt instead of %d", name, got, want)
		}
	}
}

func allowedClocks(t *testing.T) map[string]int {
	t.Helper()
	f, err := os.Open("clock.txt")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	allowed := map[string]int{}
	for lines := bufio.NewScanner(f); lines.Scan(); {
		var n int
		var name string
		if _, err := fmt.Sscan(lines.Text(), &n, &name); err != nil {
			t.Fatalf("clock.txt: %q: %v", lines.Text(), err)
		}
		allowed[name] = n
	}
	return allowed
}

// realClocks are the calls of clocks in the files of one package, by file, that its tests
// reach outside a bubble. What a function refers to is found by its name alone, so that two
// methods of one name count as one.
func realClocks(files []testFile) map[string][]string {
	functions := map[string][]*ast.FuncDecl{}
	fileOf := map[*ast.FuncDecl]testFile{}
	for _, file := range files {
		for _, decl := range file.syntax.Decls {
			if f, ok := decl.(*ast.FuncDecl); ok && f.Body != nil {
				functions[f.Name.Name] = append(functions[f.Name.Name], f)
				fileOf[f] = file
			}
		}
	}
	bubbles := bubbleMakers(functions)
	calls := map[string][]string{}
	seen := map[string]bool{}
	var reach func(name string)
	reach = func(name string) {
		if seen[name] {
			return
		}
		seen[name] = true
		for _, f := range functions[name] {
			file := fileOf[f]
			outside(f.Body, bubbles, func(n ast.Node) {
				switch x := n.(type) {
				case *ast.SelectorExpr:
					if pkg, ok := x.X.(*ast.Ident); ok && slices.Contains(clocks[pkg.Name], x.Sel.Name) {
						at := file.set.Position(x.Pos())
						calls[file.path] = append(calls[file.path], fmt.Sprintf("%s:%d: %s.%s in %s", file.path, at.Line, pkg.Name, x.Sel.Name, name))
					}
				case *ast.Ident:
					reach(x.Name)
				}
			})
		}
	}
	for name := range functions {
		if strings.HasPrefix(name, "Test") || strings.HasPrefix(name, "Fuzz") || strings.HasPrefix(name, "Example") {
			reach(name)
		}
	}
	return calls
}

// bubbleMakers are the functions that run a function of their caller in a bubble.
func bubbleMakers(functions map[string][]*ast.FuncDecl) map[string]bool {
	makers := map[string]bool{"synctest.Test": true, "Bubble": true, "FleetInBubbles": true, "StreamInBubbles": true, "ResolverInBubbles": true}
	for grown := true; grown; {
		grown = false
		for name, list := range functions {
			for _, f := range list {
				ast.Inspect(f.Body, func(n ast.Node) bool {
					call, ok := n.(*ast.CallExpr)
					if ok && makers[called(call)] && !makers[name] && takesFunction(f) {
						makers[name], grown = true, true
					}
					return true
				})
			}
		}
	}
	return makers
}

func takesFunction(f *ast.FuncDecl) bool {
	return slices.ContainsFunc(f.Type.Params.List, func(field *ast.Field) bool {
		_, ok := field.Type.(*ast.FuncType)
		return ok
	})
}

// called is the name of what is called: f, pkg.F, or the method of a value.
func called(call *ast.CallExpr) string {
	switch fun := call.Fun.(type) {
	case *ast.Ident:
		return fun.Name
	case *ast.SelectorExpr:
		if pkg, ok := fun.X.(*ast.Ident); ok && pkg.Name == "synctest" {
			return "synctest." + fun.Sel.Name
		}
		return fun.Sel.Name
	}
	return ""
}

// outside visits what is not run in a bubble.
func outside(body ast.Node, bubbles map[string]bool, visit func(ast.Node)) {
	ast.Inspect(body, func(n ast.Node) bool {
		if call, ok := n.(*ast.CallExpr); ok && bubbles[called(call)] {
			return false
		}
		if n != nil {
			visit(n)
		}
		return true
	})
}
