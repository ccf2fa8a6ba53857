package config

import "github.com/pelletier/go-toml/v2/unstable"

// maxPath bounds the paths that are located. No key of ours is as long, and the
// paths of a deeply nested text would take memory by the square of its size.
const maxPath = 1000

// locate maps the path of every key, table and list element of a valid TOML
// text to its offset. Decoding to Go values forgets where they stood, so this
// is a second pass over the same text.
func locate(text []byte) map[string]int {
	s := scan{offsets: map[string]int{}, elements: map[string]int{}}
	s.parser.Reset(text)
	table := ""
	for s.parser.NextExpression() {
		switch e := s.parser.Expression(); e.Kind {
		case unstable.Table:
			table = s.key("", e)
		case unstable.ArrayTable:
			table = s.arrayTable(e)
		case unstable.KeyValue:
			s.value(s.key(table, e), e.Value())
		}
	}
	return s.offsets
}

type scan struct {
	parser   unstable.Parser
	offsets  map[string]int
	elements map[string]int // of every [[list]] so far, by its path
}

// key walks the parts of a dotted key from the table at path, and returns the
// path of its last part. A part that is a [[list]] stands for its last element.
func (s *scan) key(path string, n *unstable.Node) string {
	for parts := n.Key(); parts.Next() && len(path) < maxPath; {
		part := parts.Node()
		if count := s.elements[path]; count > 0 {
			path = element(path, count-1)
		}
		path = join(path, string(part.Data))
		s.mark(path, part)
	}
	return path
}

func (s *scan) arrayTable(n *unstable.Node) string {
	list := s.key("", n)
	at := element(list, s.elements[list])
	s.elements[list]++
	for parts := n.Key(); parts.Next(); {
		s.offsets[at] = int(parts.Node().Raw.Offset)
	}
	return at
}

func (s *scan) value(path string, n *unstable.Node) {
	if len(path) > maxPath {
		return
	}
	children := n.Children()
	switch n.Kind {
	case unstable.Array:
		for i := 0; children.Next(); i++ {
			at := element(path, i)
			s.mark(at, children.Node())
			s.value(at, children.Node())
		}
	case unstable.InlineTable:
		for children.Next() {
			s.value(s.key(path, children.Node()), children.Node().Value())
		}
	}
}

// mark notes the first place of a path. Lists have none of their own: one in a
// list counts as standing where the list does.
func (s *scan) mark(path string, n *unstable.Node) {
	if _, known := s.offsets[path]; !known && n.Raw.Length > 0 {
		s.offsets[path] = int(n.Raw.Offset)
	}
}
