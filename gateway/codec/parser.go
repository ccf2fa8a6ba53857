package codec

import "bytes"

// parser reads JSON at offset i. Its methods leave i behind what they read; on
// an error i is anywhere, and the parser is of no more use.
type parser struct {
	b []byte
	i int
}

// withoutMark is a body without the mark of UTF-8 that some programs on Windows begin with, as RFC 8259
// allows to ignore.
func withoutMark(body []byte) []byte { return bytes.TrimPrefix(body, []byte("\ufeff")) }

// peek skips white space and returns the byte that follows, or 0 at the end.
func (p *parser) peek() byte {
	for ; p.i < len(p.b); p.i++ {
		if c := p.b[p.i]; c > ' ' || (c != ' ' && c != '\n' && c != '\t' && c != '\r') {
			return c
		}
	}
	return 0
}

// take skips white space and c, if c is what follows, and says whether it was.
func (p *parser) take(c byte) bool {
	if p.peek() != c {
		return false
	}
	p.i++
	return true
}

// kind names the type of the value at i as Clipper does.
func (p *parser) kind() string {
	switch c := p.peek(); c {
	case '{':
		return "Object"
	case '[':
		return "Array"
	case '"':
		return "String"
	case 't':
		return "True"
	case 'f':
		return "False"
	case 'n':
		return "Null"
	}
	return "Number"
}

// key reads the name of an object's member and the colon behind it. The name
// is valid until the parser's body is.
func (p *parser) key() ([]byte, error) {
	if p.peek() != '"' {
		return nil, syntaxError(p.i, "Missing the name of a member, in double quotes.")
	}
	t, err := p.text()
	if err != nil {
		return nil, err
	}
	if !p.take(':') {
		return nil, syntaxError(p.i, "Missing a colon after the name of a member.")
	}
	if t.escaped {
		return t.unescape(), nil
	}
	return t.raw, nil
}

// moreMembers reads what stands between two members, or ends the object.
func (p *parser) moreMembers() (bool, error) {
	return p.more('}', "Missing a comma or } after an object member.")
}

// moreElements reads what stands between two elements, or ends the array.
func (p *parser) moreElements() (bool, error) {
	return p.more(']', "Missing a comma or ] after an array element.")
}

func (p *parser) more(end byte, otherwise string) (bool, error) {
	switch p.peek() {
	case ',':
		p.i++
		return true, nil
	case end:
		p.i++
		return false, nil
	}
	return false, syntaxError(p.i, otherwise)
}

// end checks that nothing but white space is left.
func (p *parser) end() error {
	if p.peek(); p.i < len(p.b) {
		return syntaxError(p.i, "Nothing may follow the object.")
	}
	return nil
}
