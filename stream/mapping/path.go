package mapping

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// Path leads from the root of a tree to one value in it: names of members, and indexes of lists. The
// empty path is the root.
type Path struct {
	text  string
	steps []step
}

// step is a name, or without one an index.
type step struct {
	name    string
	index   int
	indexed bool
}

const (
	maxPathText = 1024 // bytes
	maxPathStep = 32
)

// ParsePath reads a path such as a.b[0].c, in which a name that is not of letters, digits, "_" and
// "-" stands in brackets and quotes: ["a.b"]. A leading "$" is the root, as in JSONPath.
func ParsePath(text string) (Path, error) {
	p := Path{text: text}
	if len(text) > maxPathText {
		return Path{}, fmt.Errorf("a path has at most %d bytes, and %.40q… has %d", maxPathText, text, len(text))
	}
	rest, rooted := strings.CutPrefix(text, "$")
	for begun := rooted; rest != ""; begun = true {
		one, after, err := nextStep(rest, begun)
		if err != nil {
			return Path{}, fmt.Errorf("the path %.100q: %w", text, err)
		}
		if p.steps = append(p.steps, one); len(p.steps) > maxPathStep {
			return Path{}, fmt.Errorf("the path %.100q has more than %d steps", text, maxPathStep)
		}
		rest = after
	}
	return p, nil
}

// nextStep reads the first step of a text, and returns what is behind it. A name that begins the path has
// no dot before it.
func nextStep(text string, begun bool) (one step, rest string, err error) {
	if inner, bracketed := strings.CutPrefix(text, "["); bracketed {
		return bracket(inner)
	}
	if begun {
		var dotted bool
		if text, dotted = strings.CutPrefix(text, "."); !dotted {
			return step{}, "", fmt.Errorf("a dot or a bracket must come before %.40q", text)
		}
	}
	end := strings.IndexFunc(text, func(r rune) bool { return !isNameRune(r) })
	if end < 0 {
		end = len(text)
	}
	if end == 0 {
		return step{}, "", errors.New(`a name is missing; write names with other characters than letters, digits, "_" and "-" as ["a name"]`)
	}
	return step{name: text[:end]}, text[end:], nil
}

func isNameRune(r rune) bool {
	return r == '_' || r == '-' || r >= '0' && r <= '9' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= 0x80
}

// bracket reads what is behind an opening bracket: an index or a quoted name.
func bracket(text string) (one step, rest string, err error) {
	if strings.HasPrefix(text, `"`) || strings.HasPrefix(text, "'") {
		quote := text[:1]
		name, rest, closed := strings.Cut(text[1:], quote+"]")
		if !closed {
			return step{}, "", fmt.Errorf("%s] is missing at the end of a name", quote)
		}
		return step{name: name}, rest, nil
	}
	number, rest, closed := strings.Cut(text, "]")
	index, err := strconv.Atoi(number)
	if !closed || err != nil || index < 0 {
		return step{}, "", fmt.Errorf(`brackets hold an index from 0 on, as in [0], or a name in quotes, as in ["a.b"], not %.40q`, number)
	}
	return step{index: index, indexed: true}, rest, nil
}

// String is the path as people write it.
func (p Path) String() string {
	if p.text == "" {
		return "$"
	}
	return p.text
}

// Of is the value that the path leads to in a tree, and whether there is one.
func (p Path) Of(tree any) (value any, found bool) {
	for _, s := range p.steps {
		if s.indexed {
			list, isList := tree.([]any)
			if !isList || s.index >= len(list) {
				return nil, false
			}
			tree = list[s.index]
			continue
		}
		members, isObject := tree.(map[string]any)
		if !isObject {
			return nil, false
		}
		if tree, found = members[s.name]; !found {
			return nil, false
		}
	}
	return tree, true
}
