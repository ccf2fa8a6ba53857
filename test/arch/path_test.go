package arch

import (
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/topsail-serving/topsail/test/require"
)

// How much there is to know of the way of a query.
const (
	mostFunctions = 25
	mostTypes     = 7
	mostHops      = 6 // from goroutine to goroutine
)

var pathRow = regexp.MustCompile("(?m)^\\| (?:`([a-z/]+)`)? ?\\| (?:`([A-Za-z.]+)`)? ?\\| (.*) \\|$")

// docs/architecture.md names the functions on the way of a query. They are there, and each is called by one
// that is named above it, but for the first behind a hop: nothing is left out between two of them.
func TestThePathOfAQuery(t *testing.T) {
	functions, kinds, hops := 0, 0, 0
	called, hop := map[string]bool{}, false
	for _, row := range pathRows(t) {
		folder, name := filepath.Join("..", "..", row[1]), row[2]
		declared := declarations(t, folder)
		switch body, is := declared[name]; {
		case name == "":
			hop = true
			hops++
		case !is:
			t.Errorf("%s has no %s", row[1], name)
		case body == nil:
			kinds++
		default:
			short := name[strings.LastIndexByte(name, '.')+1:]
			if !hop && !called[short] {
				t.Errorf("%s of %s is called by none of those above it", name, row[1])
			}
			for _, callee := range callees(body) {
				called[callee] = true
			}
			hop = false
			functions++
		}
	}
	if functions < 20 || functions > mostFunctions || kinds < 5 || kinds > mostTypes || hops > mostHops {
		t.Errorf("the page has %d functions, %d types and %d hops, and may have %d, %d and %d", functions, kinds, hops, mostFunctions, mostTypes, mostHops)
	}
}

// pathRows are the rows of the page's tables, with package, name and what it does.
func pathRows(t *testing.T) [][]string {
	page, err := os.ReadFile(filepath.Join("..", "..", "docs", "architecture.md"))
	require.NoError(t, err)
	_, way, found := strings.Cut(string(page), "### The same in code")
	if !found {
		t.Fatal("the page does not tell the way in code")
	}
	way, _, _ = strings.Cut(way, "\n## ")
	return pathRow.FindAllStringSubmatch(way, -1)
}

// declarations are the functions of a package with their bodies, methods with the name of their type in front,
// and its types with nil.
func declarations(t *testing.T, folder string) map[string]*ast.BlockStmt {
	files, err := filepath.Glob(filepath.Join(folder, "*.go"))
	require.NoError(t, err)
	all := map[string]*ast.BlockStmt{}
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		tree, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.SkipObjectResolution)
		require.NoError(t, err)
		for _, d := range tree.Decls {
			switch d := d.(type) {
			case *ast.FuncDecl:
				all[receiver(d)+d.Name.Name] = d.Body
			case *ast.GenDecl:
				for _, spec := range d.Specs {
					if kind, is := spec.(*ast.TypeSpec); is {
						all[kind.Name.Name] = nil
					}
				}
			}
		}
	}
	return all
}

func receiver(f *ast.FuncDecl) string {
	if f.Recv == nil {
		return ""
	}
	of := f.Recv.List[0].Type
	if pointer, is := of.(*ast.StarExpr); is {
		of = pointer.X
	}
	return types.ExprString(of) + "."
}

// callees are the names of what a body calls.
func callees(body *ast.BlockStmt) (names []string) {
	ast.Inspect(body, func(n ast.Node) bool {
		if call, is := n.(*ast.CallExpr); is {
			switch f := call.Fun.(type) {
			case *ast.Ident:
				names = append(names, f.Name)
			case *ast.SelectorExpr:
				names = append(names, f.Sel.Name)
			}
		}
		return true
	})
	return names
}
