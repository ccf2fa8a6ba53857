package screen

import (
	"fmt"
	"strings"
)

// Progress reports on Err how far work is: on a terminal in one line that is written again, else
// in a line for each change. It belongs to one goroutine.
type Progress struct {
	screen *Screen
	now    string
}

// Progress begins to tell. End must be called.
func (s *Screen) Progress() *Progress { return &Progress{screen: s} }

// Say reports how far the work is.
func (p *Progress) Say(format string, args ...any) {
	text := Clean(fmt.Sprintf(format, args...))
	if text == p.now {
		return
	}
	p.now = text
	if !p.screen.Live {
		fmt.Fprintln(p.screen.Err, text)
		return
	}
	columns, _ := p.screen.size()
	fmt.Fprintf(p.screen.Err, "\r\x1b[K%s", Short(text, columns-1))
}

// Step ends what was said, so that it stays, and goes on in a new line.
func (p *Progress) Step(format string, args ...any) {
	p.Say(format, args...)
	p.End()
}

// End leaves the cursor at the beginning of a line.
func (p *Progress) End() {
	if p.screen.Live && p.now != "" {
		fmt.Fprintln(p.screen.Err)
	}
	p.now = ""
}

// Bar is a share of the work as a bar of a width.
func Bar(share float64, width int) string {
	full := int(min(max(share, 0), 1) * float64(width))
	return "[" + strings.Repeat("#", full) + strings.Repeat(".", width-full) + "]"
}
