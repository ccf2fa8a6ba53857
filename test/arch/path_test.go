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
)

var (
	pathRow  = regexp.MustCompile("(?m)^\\| `([a-z/]+)` \\| (`[A-Za-z.]+`(?:, `[A-Za-z.]+`)*) \\|")
	function = regexp.MustCompile("`([A-Za-z.]+)`")
)

// The functions that docs/architecture.md names on the way of a query are there.
func TestThePathOfAQuery(t *testing.T) {
	root := filepath.Join("..", "..")
	page, err := os.ReadFile(filepath.Join(root, "docs", "architecture.md"))
	if err != nil {
		t.Fatal(err)
	}
	rows := pathRow.FindAllStringSubmatch(string(page), -1)
	if len(rows) < 20 {
		t.Fatalf("the page has %d rows of functions", len(rows))
	}
	for _, row := range rows {
		there := functions(t, filepath.Join(root, row[1]))
		for _, name := range function.FindAllStringSubmatch(row[2], -1) {
			if !there[name[1]] {
				t.Errorf("%s has no function %s", row[1], name[1])
			}
		}
	}
}

// functions are those of a package, methods with the name of their type in front.
func functions(t *testing.T, folder string) map[string]bool {
	files, err := filepath.Glob(filepath.Join(folder, "*.go"))
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]bool{}
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		tree, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range tree.Decls {
			if f, ok := d.(*ast.FuncDecl); ok {
				all[receiver(f)+f.Name.Name] = true
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
