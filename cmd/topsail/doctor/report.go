// Package doctor checks what Topsail depends on and says what to do about what is
// wrong: the ground under every mode, and what local mode needs. Package cluster adds
// the servers.
package doctor

import (
	"encoding/json"
	"fmt"
	"io"

	"github.com/topsail-serving/topsail/cmd/topsail/admin/screen"
	"github.com/topsail-serving/topsail/internal/check"
)

// Fails counts what does not work.
func Fails(all []check.Finding) int {
	n := 0
	for _, f := range all {
		if f.State == check.Failed {
			n++
		}
	}
	return n
}

// Print writes the report as a "table" for people or as "json" for programs.
func Print(to io.Writer, all []check.Finding, format string) error {
	switch format {
	case "table":
		t := screen.NewTable("CHECK", "STATE", "DETAIL", "NEXT STEP")
		for _, f := range all {
			t.Row(f.Name, string(f.State), f.Detail, f.Next)
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
