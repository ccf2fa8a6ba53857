// Command lab is the laboratory of the selection policies: it replays what real models
// said through them, as the gateway would ask and train them, and writes what came out:
// tables for people, and curves for the plots. It fails when a policy falls short of
// what is promised of it. `make selection` trains the models, runs this and draws.
package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
)

func main() {
	tables := flag.String("tables", "build/lab/tables.json", "what models.py wrote")
	plots := flag.String("plots", "build/lab/plots.json", "where the curves go, for plots.py")
	figures := flag.String("figures", "docs/selection/figures.md", "where the tables for people go")
	queries := flag.Int("queries", 12_000, "the length of each replay")
	flag.Parse()
	if err := run(os.Stdout, *tables, *plots, *figures, *queries); err != nil {
		fmt.Fprintln(os.Stderr, "lab:", err)
		os.Exit(1)
	}
}

// run writes its results also when they are not good enough.
func run(out io.Writer, tables, plots, figures string, queries int) error {
	list, err := readTables(tables)
	if err != nil {
		return err
	}
	results := map[string][]*result{}
	for _, s := range studies() {
		fmt.Fprintln(out, "replaying", s.name)
		if results[s.name], err = s.run(list, queries); err != nil {
			return fmt.Errorf("%s: %w", s.name, err)
		}
	}
	bars := judge(results, queries)
	for _, b := range bars {
		fmt.Fprintln(out, b)
	}
	return errors.Join(
		writePlots(plots, results, queries),
		writeFigures(figures, list, results, bars, queries),
		errors.Join(failures(bars)...),
	)
}
