//go:build unix

package launch

import (
	"bytes"
	"fmt"
	"io"
	"strings"
	"time"
)

const (
	maxLine  = 2000 // bytes of a line that are kept
	maxLines = 15   // of the output's end
)

// progress condenses what pip writes to lines for people, and keeps its end for errors.
type progress struct {
	log     io.Writer
	what    string
	begin   time.Time
	line    []byte
	last    []string
	fetched int // packages so far, with those that others need
}

func newProgress(log io.Writer, what string) *progress {
	return &progress{log: log, what: what, begin: time.Now()}
}

// say writes a line with how long it has taken so far.
func (p *progress) say(format string, args ...any) {
	fmt.Fprintf(p.log, "%s: %s (%v)\n", p.what, fmt.Sprintf(format, args...), time.Since(p.begin).Round(time.Second))
}

// Write takes output as it comes.
func (p *progress) Write(b []byte) (int, error) {
	n := len(b)
	for len(b) > 0 {
		part, rest, ended := bytes.Cut(b, []byte("\n"))
		p.line = append(p.line, part[:min(len(part), maxLine-len(p.line))]...)
		if ended {
			p.take(strings.TrimSpace(string(p.line)))
			p.line = p.line[:0]
		}
		b = rest
	}
	return n, nil
}

func (p *progress) take(line string) {
	if line == "" {
		return
	}
	p.last = append(p.last, line)
	p.last = p.last[max(0, len(p.last)-maxLines):]
	switch first, rest, _ := strings.Cut(line, " "); {
	case first == "Collecting":
		p.fetched++
		name, _, _ := strings.Cut(rest, " ")
		p.say("collecting %s, package %d", name, p.fetched)
	case first == "Downloading":
		p.say("downloading %s", rest)
	case strings.HasPrefix(line, "Building wheel for "):
		p.say("building %s", strings.Fields(line)[3])
	case strings.HasPrefix(line, "Installing collected packages:"):
		p.say("installing %s", packages(strings.Count(line, ",")+1))
	}
}

// tail is the end of the output, for an error.
func (p *progress) tail() string {
	lines := p.last
	if len(p.line) > 0 {
		lines = append(lines, string(p.line))
	}
	var b strings.Builder
	for _, line := range lines {
		b.WriteString("  " + line + "\n")
	}
	return b.String()
}

// advice is the end of pip's output and what to do about it.
func (p *progress) advice() string {
	text := p.tail()
	switch {
	case strings.Contains(text, "No matching distribution found"), strings.Contains(text, "ResolutionImpossible"):
		return text + "No matching package was found: check the bundle's requirements, whether they have wheels for this Python and " +
			"this machine, and pip's index on this node (PIP_INDEX_URL, pip.conf). A node without an index needs a wheelhouse"
	case strings.Contains(text, "No space left on device"):
		return text + "The disk is full: free space for the work folder"
	}
	return text + "The end of pip's output says why; the next start tries again"
}
