package main

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strings"
	"text/tabwriter"
)

// report is everything that a run of this program found.
type report struct {
	Machine machine   `json:"machine"`
	Options options   `json:"options"`
	Cases   []results `json:"cases"`
}

// results are the figures of one case.
type results struct {
	Name    string   `json:"name"`
	About   string   `json:"about"`
	Figures []figure `json:"figures"`
}

func (r *report) missed() int {
	n := 0
	for _, c := range r.Cases {
		for _, f := range c.Figures {
			if f.Verdict() == "MISS" {
				n++
			}
		}
	}
	return n
}

// write prints the tables to w and writes the files that were asked for.
func (r *report) write(w io.Writer, opt options) error {
	if err := r.text(w); err != nil {
		return err
	}
	if opt.markdown != "" {
		if err := os.WriteFile(opt.markdown, []byte(r.markdown()), 0o644); err != nil {
			return err
		}
	}
	if opt.json == "" {
		return nil
	}
	b, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(opt.json, append(b, '\n'), 0o644)
}

func (r *report) text(w io.Writer) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintf(t, "%s; medians of %d runs of %d s\n", r.Machine, r.Options.Runs, r.Options.Seconds)
	for _, c := range r.Cases {
		fmt.Fprintf(t, "\n%s: %s\n  \tmedian\truns\tbar\t\n", c.Name, c.About)
		for _, f := range c.Figures {
			fmt.Fprintf(t, "  %s\t%s\t%s\t%s\t%s\n", f.What, f.Value(), f.Spread(), f.Wanted(), f.Verdict())
		}
	}
	return t.Flush()
}

func (r *report) markdown() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s; medians of %d runs of %d s, and the smallest and the largest run.\n", r.Machine, r.Options.Runs, r.Options.Seconds)
	for _, c := range r.Cases {
		fmt.Fprintf(&b, "\n### `%s`: %s\n\n| | median | runs | bar | |\n|---|---:|---:|---:|---|\n", c.Name, c.About)
		for _, f := range c.Figures {
			fmt.Fprintf(&b, "| %s | %s | %s | %s | %s |\n", f.What, f.Value(), f.Spread(), cmp.Or(f.Wanted(), "–"), f.Verdict())
		}
	}
	return b.String()
}

// MarshalJSON adds what can be computed from the samples.
func (f figure) MarshalJSON() ([]byte, error) {
	return json.Marshal(struct {
		What    string    `json:"what"`
		Unit    unit      `json:"unit"`
		Median  float64   `json:"median"`
		Samples []float64 `json:"samples"`
		Bar     string    `json:"bar,omitempty"`
		Verdict string    `json:"verdict,omitempty"`
		Absent  string    `json:"absent,omitempty"`
	}{f.What, f.Unit, f.Median(), f.Samples, f.Wanted(), f.Verdict(), f.Absent})
}
