// Package doctor checks what Topsail depends on and says what to do about what is
// wrong: the ground under every mode, and what local mode needs. Package cluster adds
// the servers.
package doctor

import (
	"encoding/json"
	"fmt"
	"io"
	"regexp"
	"strings"

	"github.com/topsail-serving/topsail/cmd/topsail/admin/screen"
)

// State is how a check went.
type State string

// The states: Warn works, and should not stay so; Fail does not work.
const (
	OK   State = "ok"
	Warn State = "warn"
	Fail State = "fail"
)

// Finding is one line of the report.
type Finding struct {
	Check  string `json:"check"`
	State  State  `json:"state"`
	Detail string `json:"detail"`
	Next   string `json:"next_step,omitempty"` // empty where nothing is to be done
}

// Good is a finding that asks for nothing.
func Good(check, format string, args ...any) Finding {
	return Finding{Check: check, State: OK, Detail: fmt.Sprintf(format, args...)}
}

// userInfo is a user's name and password in a URL, or in what was meant as one.
var userInfo = regexp.MustCompile(`(?:(://)[^@\s"]*|[^\s"/]+:[^\s"/]*)(?:@|%40)`)

// tidy makes a finding one line of each, without passwords of URLs: errors quote them.
func (f Finding) tidy() Finding {
	f.Detail = userInfo.ReplaceAllString(strings.Join(strings.Fields(f.Detail), " "), "$1")
	return f
}

// Fails counts what does not work.
func Fails(all []Finding) int {
	n := 0
	for _, f := range all {
		if f.State == Fail {
			n++
		}
	}
	return n
}

// Print writes the report as a "table" for people or as "json" for programs.
func Print(to io.Writer, all []Finding, format string) error {
	switch format {
	case "table":
		t := screen.NewTable("CHECK", "STATE", "DETAIL", "NEXT STEP")
		for _, f := range all {
			t.Row(f.Check, string(f.State), f.Detail, f.Next)
		}
		return t.Print(to)
	case "json":
		e := json.NewEncoder(to)
		e.SetEscapeHTML(false)
		e.SetIndent("", "  ")
		return e.Encode(all)
	}
	return fmt.Errorf("output %q is unknown: use table or json", format)
}
