package jobs

import (
	"fmt"
	"strings"
)

// quote is s as a string of HCL, which reads back as s. References such as
// ${NOMAD_ALLOC_ID} are Nomad's client's to fill in when it starts a task, and are
// text like any other here. (HCL brings text into Unicode's normal form C; s should
// have it.)
func quote(s string) string {
	var b strings.Builder
	b.WriteByte('"')
	for i := range len(s) {
		switch c := s[i]; {
		case c == '"' || c == '\\':
			b.WriteByte('\\')
			b.WriteByte(c)
		case c == '\n':
			b.WriteString(`\n`)
		case c < ' ' || c == 0x7f:
			fmt.Fprintf(&b, `\u%04x`, c)
		case (c == '$' || c == '%') && strings.HasPrefix(s[i+1:], "{"):
			b.WriteString(sign(s, i))
		default:
			b.WriteByte(c)
		}
	}
	b.WriteByte('"')
	return b.String()
}

// sign is the sign before the brace in s[i:], written so that no template begins
// there. Doubling it says so, but not after the same sign.
func sign(s string, i int) string {
	if i > 0 && s[i-1] == s[i] {
		return fmt.Sprintf(`\u%04x`, s[i])
	}
	return s[i:i+1] + s[i:i+1]
}
