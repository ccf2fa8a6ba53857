package mapping

import (
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

const document = `{"a": {"b": [{"c": 1}, {"c": null}], "x.y": 2, "ä-1": 3}, "list": [[1, 2], [3]], "": 4, "null": null}`

func TestPaths(t *testing.T) {
	tree, err := ParseJSON([]byte(document))
	if err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]string{
		"a.b[0].c": "1", "$.a.b[0].c": "1", `$["a"].b[0]['c']`: "1", "a.b[1].c": "null", `a["x.y"]`: "2", "a.ä-1": "3",
		"list[0][1]": "2", "list[1]": "[3]", "null": "null", `[""]`: "4", "$.null": "null",
		"a.b[2]": "", "a.b.c": "", "a[0]": "", "list.0": "", "nothing": "", "null.a": "", "list[1][1]": "",
	} {
		p, err := ParsePath(path)
		if err != nil {
			t.Errorf("%s: %v", path, err)
			continue
		}
		v, found := p.Of(tree)
		if !found {
			if want != "" {
				t.Errorf("%s leads nowhere", path)
			}
			continue
		}
		if text, err := appendJSON(nil, v); err != nil || string(text) != want {
			t.Errorf("%s leads to %s, %v, not to %q", path, text, err, want)
		}
		if p.String() != path {
			t.Errorf("%s is written %s", path, p)
		}
	}
	for path, want := range map[string]string{
		"a.": "a name is missing", ".a": "a name is missing", "a..b": "a name is missing", "a[x]": "brackets hold", "a[-1]": "brackets hold", "a[1": "brackets hold",
		`a["b]`: "is missing at the end", "a b": "must come before", "$a": "must come before", "a[0]b": "must come before",
		strings.Repeat("x", 1025): "at most 1024 bytes", strings.Repeat("[0]", 33): "more than 32 steps",
	} {
		if _, err := ParsePath(path); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.50s: %v, want %s", path, err, want)
		}
	}
	if root, err := ParsePath(""); err != nil || root.String() != "$" {
		t.Errorf("the root is %v, %v", root, err)
	}
}

// TestPathsFindEverything: for each value of any tree there is a path that leads to it.
func TestPathsFindEverything(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		tree := trees(3).Draw(t, "tree")
		at, text := tree, ""
		for range maxPathStep {
			switch v := at.(type) {
			case map[string]any:
				if len(v) == 0 {
					return
				}
				var names []string
				for name := range v {
					names = append(names, name)
				}
				name := rapid.SampledFrom(names).Draw(t, "name")
				text += fmt.Sprintf(`["%s"]`, name)
				at = v[name]
			case []any:
				if len(v) == 0 {
					return
				}
				i := rapid.IntRange(0, len(v)-1).Draw(t, "index")
				text += fmt.Sprintf("[%d]", i)
				at = v[i]
			default:
				p, err := ParsePath(text)
				if err != nil {
					t.Fatalf("%s: %v", text, err)
				}
				if got, found := p.Of(tree); !found || got != at {
					t.Fatalf("%s leads to %v, not %v", text, got, at)
				}
				return
			}
		}
	})
}

// trees are trees of JSON's types, so many levels deep.
func trees(levels int) *rapid.Generator[any] {
	leaf := rapid.OneOf(
		rapid.Custom(func(t *rapid.T) any { return rapid.StringMatching(`[a-zé ]{0,5}`).Draw(t, "text") }),
		rapid.Custom(func(t *rapid.T) any { return rapid.Bool().Draw(t, "bool") }),
		rapid.Custom(func(t *rapid.T) any { return rapid.Float64().Draw(t, "number") }),
	)
	if levels == 0 {
		return leaf
	}
	inner := trees(levels - 1)
	return rapid.OneOf(leaf,
		rapid.Custom(func(t *rapid.T) any { return rapid.SliceOfN(inner, 0, 3).Draw(t, "list") }),
		rapid.Custom(func(t *rapid.T) any {
			return rapid.MapOfN(rapid.StringMatching(`[a-z.\[ ]{0,4}`), inner, 0, 3).Draw(t, "object")
		}),
	)
}

func FuzzPath(f *testing.F) {
	f.Add("a.b[0].c", document)
	f.Add(`$["x.y"]`, `[1, {"a": "b"}]`)
	f.Fuzz(func(t *testing.T, path, text string) {
		p, err := ParsePath(path)
		if err != nil {
			return
		}
		if len(p.steps) > maxPathStep {
			t.Fatalf("%q has %d steps", path, len(p.steps))
		}
		tree, err := ParseJSON([]byte(text))
		if err != nil {
			return
		}
		if v, found := p.Of(tree); found {
			if _, err := appendJSON(nil, v); err != nil {
				t.Fatalf("%q leads to %v, which cannot be written: %v", path, v, err)
			}
		}
	})
}
