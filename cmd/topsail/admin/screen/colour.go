package screen

import "regexp"

// Colours of words, so that what is wrong is seen first. A word is never known by its
// colour alone.
const (
	red    = "\x1b[31m"
	green  = "\x1b[32m"
	yellow = "\x1b[33m"
	plain  = "\x1b[0m"
)

// states are the words that tell how something is, between spaces.
var states = regexp.MustCompile(`(^| )(ready|ok|applied|failed|stopped|ejected|starting|draining|warn|blocked|conflict)( |$)`)

var colours = map[string]string{
	"ready": green, "ok": green, "applied": green,
	"failed": red, "stopped": red, "ejected": red,
	"starting": yellow, "draining": yellow, "warn": yellow, "blocked": yellow, "conflict": yellow,
}

// Paint colours the words of a clean line that tell how something is.
func (s *Screen) Paint(line string) string {
	if !s.Colour {
		return line
	}
	return states.ReplaceAllStringFunc(line, func(found string) string {
		parts := states.FindStringSubmatch(found)
		return parts[1] + colours[parts[2]] + parts[2] + plain + parts[3]
	})
}
