package codec

import (
	"fmt"
	"strconv"
)

// placeOf names the value at a byte offset of a body that is JSON: input_batch[3][1], or the body
// itself.
func placeOf(body []byte, at int) string {
	p := parser{b: body}
	p.peek()
	if p.i < at {
		if path, ok := p.find(at, ""); ok {
			return path
		}
	}
	return "the body"
}

// find looks for the value at an offset in the value at i, which has a path. Where it is not in
// there, i is behind the value.
func (p *parser) find(at int, path string) (string, bool) {
	c := p.peek()
	if p.i >= at {
		return path, true
	}
	if c != '{' && c != '[' {
		_ = p.skip(0) // the body is known to be JSON
		return "", false
	}
	p.i++
	if p.take('}') || p.take(']') {
		return "", false
	}
	for n := 0; ; n++ {
		element := path + "[" + strconv.Itoa(n) + "]"
		if c == '{' {
			key, _ := p.key()
			if element = name(key); path != "" {
				element = path + "." + element
			}
		}
		if found, ok := p.find(at, element); ok {
			return found, true
		}
		if !p.take(',') {
			p.i++
			return "", false
		}
	}
}

// longestName bounds the name of a key in an error, in bytes.
const longestName = 40

// name is a key as errors name it.
func name(key []byte) string {
	for _, c := range key {
		if !(c == '_' || c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z') {
			return fmt.Sprintf("%.*q", longestName, key)
		}
	}
	return string(key[:min(len(key), longestName)])
}
