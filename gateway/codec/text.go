package codec

import (
	"encoding/binary"
	"unicode/utf16"
	"unicode/utf8"
)

// text is a JSON string whose syntax and encoding were found good.
type text struct {
	raw     []byte // between the quotes, in the body
	escaped bool
}

// text reads the string at i.
func (p *parser) text() (text, error) {
	first := p.i + 1
	t, ascii := text{}, true
	for i := first; ; i++ {
		i = plainRun(p.b, i)
		if i >= len(p.b) {
			return t, syntaxError(p.i, "Missing a closing quotation mark in string.")
		}
		switch c := p.b[i]; {
		case c == '"':
			t.raw, p.i = p.b[first:i], i+1
			if !ascii && !utf8.Valid(t.raw) {
				return t, syntaxError(first, "Invalid encoding in string: text must be UTF-8.")
			}
			return t, nil
		case c == '\\':
			t.escaped = true
			n, err := p.escapeLen(i)
			if err != nil {
				return t, err
			}
			i += n - 1
		case c < ' ':
			return t, syntaxError(i, "Invalid encoding in string: control characters must be escaped.")
		default:
			ascii = false
		}
	}
}

// plainRun returns the offset of the first byte from i on that is not printable
// ASCII or is a quote or a backslash; len(b) if there is none. It looks at eight
// bytes at a time.
func plainRun(b []byte, i int) int {
	const ones, highs = 0x0101010101010101, 0x8080808080808080
	for ; i+8 <= len(b); i += 8 {
		x := binary.LittleEndian.Uint64(b[i:])
		quote, slash := x^(ones*'"'), x^(ones*'\\')
		// A byte minus n borrows into its high bit when it is below n.
		if ((x-ones*' ')|(quote-ones)|(slash-ones)|x)&highs != 0 {
			break
		}
	}
	for ; i < len(b); i++ {
		if c := b[i]; c < ' ' || c >= utf8.RuneSelf || c == '"' || c == '\\' {
			break
		}
	}
	return i
}

// escapeLen checks the escape at offset i and returns its length.
func (p *parser) escapeLen(i int) (int, error) {
	if i+1 == len(p.b) {
		return 0, syntaxError(p.i, "Missing a closing quotation mark in string.")
	}
	switch p.b[i+1] {
	case '"', '\\', '/', 'b', 'f', 'n', 'r', 't':
		return 2, nil
	case 'u':
		r, ok := hex4(p.b[i:])
		switch {
		case !ok:
			return 0, syntaxError(i, "Incorrect hex digit after \\u escape in string.")
		case !utf16.IsSurrogate(r):
			return 6, nil
		}
		if low, ok := hex4(p.b[i+6:]); ok && utf16.DecodeRune(r, low) != utf8.RuneError {
			return 12, nil
		}
		return 0, syntaxError(i, "The surrogate pair in string is incomplete.")
	}
	return 0, syntaxError(i, "Invalid escape character in string.")
}

// hex4 reads the code unit of the \uXXXX that b begins with.
func hex4(b []byte) (r rune, ok bool) {
	if len(b) < 6 || b[0] != '\\' || b[1] != 'u' {
		return 0, false
	}
	for _, c := range b[2:6] {
		switch {
		case isDigit(c):
			c -= '0'
		case c|0x20 >= 'a' && c|0x20 <= 'f':
			c = c | 0x20 - 'a' + 10
		default:
			return 0, false
		}
		r = r<<4 | rune(c)
	}
	return r, true
}

// bytes returns the text in memory of its own.
func (t text) bytes() []byte {
	if t.escaped {
		return t.unescape()
	}
	return append(make([]byte, 0, len(t.raw)), t.raw...)
}

// unescape returns the text without its escapes, in memory of its own. No escape
// stands for more bytes than it has.
func (t text) unescape() []byte {
	out := make([]byte, 0, len(t.raw))
	for i := 0; i < len(t.raw); i++ {
		c := t.raw[i]
		if c != '\\' {
			out = append(out, c)
			continue
		}
		i++
		switch c := t.raw[i]; c {
		case 'b':
			out = append(out, '\b')
		case 'f':
			out = append(out, '\f')
		case 'n':
			out = append(out, '\n')
		case 'r':
			out = append(out, '\r')
		case 't':
			out = append(out, '\t')
		case 'u':
			r, n := unescapeRune(t.raw[i-1:])
			out = utf8.AppendRune(out, r)
			i += n - 2
		default:
			out = append(out, c)
		}
	}
	return out
}

// unescapeRune reads the \uXXXX that b begins with, two of them for a surrogate pair, and returns
// the bytes it read.
func unescapeRune(b []byte) (rune, int) {
	r, _ := hex4(b)
	if !utf16.IsSurrogate(r) {
		return r, 6
	}
	low, _ := hex4(b[6:])
	return utf16.DecodeRune(r, low), 12
}
