package arch

import (
	"cmp"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/topsail-serving/topsail/test/require"
)

// TestCommentsNameWhatTheyDocument finds comments of what has been renamed since. A doc comment begins with the
// name that it documents, after an article if it likes. The comment of a group or of a test may begin with any
// word but a name that is not there.
func TestCommentsNameWhatTheyDocument(t *testing.T) {
	read := 0
	for _, name := range found(t, filepath.Join("..", ".."), ".go") {
		set := token.NewFileSet()
		file, err := parser.ParseFile(set, name, nil, parser.ParseComments)
		require.NoError(t, err)
		if ast.IsGenerated(file) {
			continue
		}
		for doc, names := range documented(file) {
			read++
			free := len(names) > 1 || strings.HasSuffix(name, "_test.go")
			if first := firstWord(doc); !namesOne(first, names) && (!free || identifier(first)) {
				t.Errorf("%s: the comment of %s begins with %q", set.Position(doc.Pos()), strings.Join(names, ", "), first)
			}
		}
	}
	if read < 1000 {
		t.Errorf("read only %d comments", read)
	}
}

// files are those below a folder that are not built, fetched or of tests alone.
func files(t *testing.T, folder string) []string {
	t.Helper()
	var names []string
	err := filepath.WalkDir(folder, func(name string, entry fs.DirEntry, err error) error {
		if err == nil && entry.IsDir() && slices.Contains([]string{".git", "build", "bin", "node_modules", "dist", "testdata"}, entry.Name()) {
			return fs.SkipDir
		}
		if err == nil && !entry.IsDir() {
			names = append(names, name)
		}
		return err
	})
	require.NoError(t, err)
	return names
}

// documented are the doc comments of a file's functions, types, constants and variables, with what they document.
func documented(file *ast.File) map[*ast.CommentGroup][]string {
	found := map[*ast.CommentGroup][]string{}
	add := func(doc *ast.CommentGroup, names ...string) {
		if doc != nil && doc.Text() != "" {
			found[doc] = append(found[doc], names...)
		}
	}
	for _, declared := range file.Decls {
		switch d := declared.(type) {
		case *ast.FuncDecl:
			add(d.Doc, d.Name.Name)
		case *ast.GenDecl:
			var above *ast.CommentGroup // is also for the values that follow without one
			for _, spec := range d.Specs {
				switch s := spec.(type) {
				case *ast.TypeSpec:
					add(s.Doc, s.Name.Name)
					add(d.Doc, s.Name.Name)
				case *ast.ValueSpec:
					above = cmp.Or(s.Doc, above)
					for _, name := range s.Names {
						add(above, name.Name)
						add(d.Doc, name.Name)
					}
				}
			}
		}
	}
	return found
}

func firstWord(doc *ast.CommentGroup) string {
	words := strings.Fields(doc.Text())
	if len(words) > 1 && slices.Contains([]string{"A", "An", "The"}, words[0]) {
		words = words[1:]
	}
	return strings.TrimSuffix(strings.TrimRight(words[0], ".,:;"), "'s")
}

func namesOne(word string, names []string) bool {
	return slices.ContainsFunc(names, func(name string) bool { return word == name || word == name+"s" })
}

// identifier says whether a word can only be a name: of a test, or with capitals behind a small letter.
func identifier(word string) bool {
	return regexp.MustCompile(`^([a-z]\w*|Test)[A-Z]\w*$`).MatchString(word)
}
