package main

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/topsail-serving/topsail/test/require"
)

// TestTheHeaderDeclaresTheExports: the same functions with the same types, and at most ten.
func TestTheHeaderDeclaresTheExports(t *testing.T) {
	text, err := os.ReadFile("topsail.h")
	require.NoError(t, err)
	declared := map[string]string{}
	comments := regexp.MustCompile(`(?s)/\*.*?\*/`)
	for _, f := range regexp.MustCompile(`(?m)^(\w+ \*?)(topsail_\w+)\((.*)\);$`).FindAllStringSubmatch(comments.ReplaceAllString(string(text), ""), -1) {
		var takes []string
		for parameter := range strings.SplitSeq(f[3], ", ") {
			if kind := plain(regexp.MustCompile(`\w+$`).ReplaceAllString(parameter, "")); parameter != "void" {
				takes = append(takes, kind)
			}
		}
		declared[f[2]] = fmt.Sprint(takes, " → ", plain(f[1]))
	}
	exported := exports(t)
	if !maps.Equal(declared, exported) {
		t.Errorf("topsail.h declares %v,\nand export.go exports %v", declared, exported)
	}
	if n := len(exported); n == 0 || n > 10 {
		t.Errorf("there are %d functions", n)
	}
}

// plain is a type of the header without what is only there.
func plain(kind string) string {
	kind = strings.ReplaceAll(strings.TrimPrefix(kind, "const "), " ", "")
	if kind == "topsail" {
		return "uint64_t"
	}
	return kind
}

// exports are the functions of export.go, with their types in C.
func exports(t *testing.T) map[string]string {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), "export.go", nil, parser.ParseComments|parser.SkipObjectResolution)
	require.NoError(t, err)
	found := map[string]string{}
	for _, declaration := range file.Decls {
		f, ok := declaration.(*ast.FuncDecl)
		if !ok || f.Doc == nil || !slices.ContainsFunc(f.Doc.List, func(c *ast.Comment) bool { return c.Text == "//export "+f.Name.Name }) {
			continue
		}
		var takes []string
		for _, field := range f.Type.Params.List {
			takes = append(takes, slices.Repeat([]string{inC(field.Type)}, len(field.Names))...)
		}
		returns := "void"
		if f.Type.Results != nil {
			returns = inC(f.Type.Results.List[0].Type)
		}
		found[f.Name.Name] = fmt.Sprint(takes, " → ", returns)
	}
	return found
}

// inC is a type of cgo as C writes it: **C.char is char**.
func inC(kind ast.Expr) string {
	text := types.ExprString(kind)
	name := strings.TrimLeft(text, "*")
	return strings.TrimPrefix(name, "C.") + text[:len(text)-len(name)]
}
