package screen

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// Clean makes text that a server sent safe for one cell: white space becomes a space,
// and what a terminal would obey, or what changes the direction of reading, a ?.
func Clean(text string) string {
	return strings.Map(func(r rune) rune {
		if r == '\n' || r == '\t' || r == '\r' {
			return ' '
		}
		return harmless(r)
	}, strings.ToValidUTF8(text, "?"))
}

// CleanLines is Clean for text of several lines: new lines and tabs stay.
func CleanLines(text string) string {
	text = strings.ReplaceAll(text, "\r\n", "\n")
	return strings.Map(func(r rune) rune {
		if r == '\n' || r == '\t' {
			return r
		}
		return harmless(r)
	}, strings.ToValidUTF8(text, "?"))
}

// harmless replaces controls, C1 ones included, and characters that are not seen.
func harmless(r rune) rune {
	if unicode.Is(unicode.Cc, r) || unicode.Is(unicode.Cf, r) || r == '\u2028' || r == '\u2029' || r == utf8.RuneError {
		return '?'
	}
	return r
}

// Short cuts text to a number of characters.
func Short(text string, most int) string {
	if utf8.RuneCountInString(text) <= most {
		return text
	}
	return string([]rune(text)[:most-1]) + "…"
}
