//go:build unix

package process

import (
	"regexp"
	"slices"
	"strings"
)

var (
	// logLine is one of a log that tells of no failure, by its level: of Python, Java, Go, or in JSON.
	logLine = regexp.MustCompile(`^(.{0,60}\b)?(TRACE|DEBUG|FINE|CONFIG|INFO|NOTICE|WARN|WARNING)\b|^\{.{0,200}"(level|severity)": ?"(?i:trace|debug|info|notice|warn|warning)`)
	// launchLine is one of the launcher's progress, which tells what a start waits for, and of no failure.
	launchLine = regexp.MustCompile(`^(bundle|environment|wheelhouse|sdk) [0-9a-f]{8,64}: `)
	// failureLevel is how a line of a log begins that does, with the name of who writes it.
	failureLevel = regexp.MustCompile(`^(ERROR|CRITICAL|FATAL|SEVERE)\b:? ?([\w.]+: )?`)
)

const (
	pythonTrace = "Traceback (most recent call last):"
	ownPrefix   = "topsail: " // of what the programs of Topsail say when they fail
	longestSaid = 300         // bytes
)

// LastError is what the lines of one run of a command say about its end: how its last traceback ends,
// what a program of Topsail said, or else the first of the last lines that are not a log's. It is
// empty where they say nothing.
func LastError(lines []string) string {
	for i, line := range slices.Backward(lines) {
		switch {
		case line == pythonTrace:
			for _, after := range lines[i+1:] {
				if after != "" && after[0] != ' ' {
					return short(after)
				}
			}
		case strings.HasPrefix(line, ownPrefix):
			return short(strings.TrimPrefix(line, ownPrefix))
		}
	}
	first := ""
	for _, line := range slices.Backward(lines) {
		if logLine.MatchString(line) || launchLine.MatchString(line) {
			if first != "" {
				break
			}
			continue
		}
		if plain := strings.TrimSpace(failureLevel.ReplaceAllString(line, "")); plain != "" {
			first = plain
		}
	}
	return short(first)
}

// lastPlain is the last line that is not a log's.
func lastPlain(lines []string) string {
	for _, line := range slices.Backward(lines) {
		if line = strings.TrimSpace(line); line != "" && !logLine.MatchString(line) {
			return short(line)
		}
	}
	return ""
}

func short(line string) string {
	line = strings.TrimSpace(line)
	return strings.ToValidUTF8(line[:min(len(line), longestSaid)], "")
}

// Saying is the last line that the present run has written, if it is not a log's; empty: there is none.
func (c *Child) Saying() string { return lastPlain(c.out.tail.run()) }

// because adds to how a run ended what it said, where it ended on its own.
func (c *Child) because(how string) string {
	if !strings.HasPrefix(how, exitStatus) {
		return how
	}
	if said := LastError(c.out.tail.run()); said != "" {
		return how + ": " + said
	}
	if how == exitStatus+"0" {
		return how + ": it ended on its own, and said nothing about it"
	}
	return how
}
