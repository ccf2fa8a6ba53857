package codec

import "strconv"

// maxDepth bounds nesting, and with it the stack that a body can make us use.
const maxDepth = 128

// checkSyntax returns what makes body invalid JSON, or nil.
func checkSyntax(body []byte) error {
	p := parser{b: body}
	if p.peek(); p.i == len(body) {
		return syntaxError(p.i, emptyDocument)
	}
	if err := p.skip(0); err != nil {
		return err
	}
	return p.end()
}

// skip reads one value of any type, at the given depth, and forgets it.
func (p *parser) skip(depth int) error {
	switch p.peek() {
	case '{':
		return p.skipObject(depth + 1)
	case '[':
		return p.skipArray(depth + 1)
	case '"':
		_, err := p.text()
		return err
	case 't':
		return p.literal("true")
	case 'f':
		return p.literal("false")
	case 'n':
		return p.literal("null")
	}
	_, err := p.number()
	return err
}

func (p *parser) skipObject(depth int) error {
	if err := p.checkDepth(depth); err != nil {
		return err
	}
	p.i++
	if p.take('}') {
		return nil
	}
	for {
		if _, err := p.key(); err != nil {
			return err
		}
		if err := p.skip(depth); err != nil {
			return err
		}
		if more, err := p.moreMembers(); !more {
			return err
		}
	}
}

func (p *parser) skipArray(depth int) error {
	if err := p.checkDepth(depth); err != nil {
		return err
	}
	p.i++
	if p.take(']') {
		return nil
	}
	for {
		if err := p.skip(depth); err != nil {
			return err
		}
		if more, err := p.moreElements(); !more {
			return err
		}
	}
}

func (p *parser) checkDepth(depth int) error {
	if depth > maxDepth {
		return syntaxError(p.i, "It is nested deeper than "+strconv.Itoa(maxDepth)+" levels.")
	}
	return nil
}

func (p *parser) literal(word string) error {
	if end := p.i + len(word); end > len(p.b) || string(p.b[p.i:end]) != word {
		return syntaxError(p.i, "Invalid value.")
	}
	p.i += len(word)
	return nil
}
