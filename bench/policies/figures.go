package main

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// page is the Markdown that people read.
type page struct{ strings.Builder }

func (p *page) say(format string, args ...any) { fmt.Fprintf(p, format+"\n\n", args...) }

func (p *page) row(cells ...string) { fmt.Fprintf(p, "| %s |\n", strings.Join(cells, " | ")) }

func (p *page) table(head ...string) {
	p.row(head...)
	fmt.Fprintf(p, "|%s\n", strings.Repeat("---|", len(head)))
}

func (p *page) plot(file, what string) { p.say("\n![%s](%s.svg)", what, file) }

// writeFigures writes all tables.
func writeFigures(path string, tables []*Table, results map[string][]*result, bars []bar, queries int) error {
	p := &page{}
	p.say("# Figures of the selection policies")
	p.say("Written by `make selection`. Models of scikit-learn, trained on 40 %% of its handwritten digits (`load_digits`), are asked about the others.\n"+
		"The policies ask and learn as in the gateway, with their default options and feedback after every query. Each replay has %d queries: all\n"+
		"images that no model has seen, shuffled repeatedly. Numbers are the median of %d seeds and, in brackets, the range. The best single\n"+
		"model is the best in hindsight.", queries, seeds)
	p.promises(bars)
	p.models(tables)
	p.errors("Nothing changes", "regret-stationary", "Five models of very different quality.", results[stationary])
	p.drift(results[drifting], queries)
	p.errors("Errors under drift", "regret-drift", "The best single model is now the second of the five, which nothing happens to.", results[drifting])
	p.errors("Ensembles", "ensembles", "Five models that each see a random 16 of the 64 pixels, drawn anew for each seed.", results[ensembles])
	p.seeds(results[ensembles])
	p.errors("Experts", "regret-specialists", "Each model knows two digits well. `linucb` looks at 16 numbers of the image, the means of 2 by 2 pixels.", results[specialists])
	p.errors("Numbers", "numbers", "The digit as a number, from models with 8 to 24 pixels. The error is the mean squared difference, in % of 81.", results[numbers])
	p.errors("Odd or even", "odd", "Models with 16 pixels each say 1 or 0. One of the five was trained the wrong way round.", results[odd])
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return fmt.Errorf("write figures: %w", err)
	}
	return os.WriteFile(path, []byte(strings.TrimSpace(p.String())+"\n"), 0o644)
}

// models says how good the models are by themselves, where all seeds have the same.
func (p *page) models(tables []*Table) {
	p.say("## The models")
	p.table("table", "model", "error, %", "gone bad, %", "taken to need, ms")
	for _, t := range tables {
		for i := range t.Models {
			if m := &t.Models[i]; len(t.Inputs) > 0 {
				bad := "–"
				if len(m.Degraded) > 0 {
					bad = fmt.Sprintf("%.1f", 100*wrong(m.Degraded, t.Labels))
				}
				p.row(t.Name, m.Name, fmt.Sprintf("%.1f", 100*wrong(m.Outputs, t.Labels)), bad, fmt.Sprintf("%.1f", float64(m.Micros)/1000))
			}
		}
	}
	p.say("\nA model that goes bad gets its pixels in a wrong order. The times are made up, so that better models are slower.")
}

func wrong(said, labels []float64) float64 {
	n := 0
	for i := range said {
		if said[i] != labels[i] {
			n++
		}
	}
	return float64(n) / float64(len(labels))
}

// errors has a row for each policy, the best first.
func (p *page) errors(title, file, about string, results []*result) {
	p.say("## %s", title)
	p.say("%s", about)
	p.table("policy", "error, %", "errors beyond the best single model", "below it, of 10 seeds", "models asked")
	p.row("best single model", spread("%.2f", percents(results[0].bestErrors())), "0", "–", "1")
	ranked := slices.SortedStableFunc(slices.Values(results), func(a, b *result) int {
		return cmp.Compare(median(a.errors()), median(b.errors()))
	})
	for _, r := range ranked {
		p.row("`"+r.policy+"`", spread("%.2f", percents(r.errors())), spread("%.0f", r.regret(len(r.traces[0].losses))), fmt.Sprint(r.below()), fmt.Sprintf("%.2f", median(r.asked())))
	}
	p.plot(file, title+": "+about)
}

// drift says which policies ask the model that goes bad, and when.
func (p *page) drift(results []*result, queries int) {
	bad, good, soon := queries/3, queries*2/3, queries/12
	p.say("## Drift: the best model goes bad at %d and recovers at %d", bad, good)
	p.say("The share of queries that ask it, in %%, and after how many queries its share of the last %d has passed 10 %% and 60 %%.", window)
	p.table("policy", fmt.Sprintf("%d to %d", bad+soon-window, bad+soon), fmt.Sprintf("%d to %d", bad+soon, good), "below 10 % after",
		fmt.Sprintf("%d to %d", good+soon-window, good+soon), fmt.Sprintf("%d to %d", good+soon, queries), "above 60 % after")
	for _, r := range results {
		if slices.Max(r.asked()) > 1 {
			continue
		}
		p.row("`"+r.policy+"`",
			spread("%.1f", percents(r.share(bad+soon-window, bad+soon))), spread("%.1f", percents(r.share(bad+soon, good))), spread("%.0f", r.until(bad, under(leaves))),
			spread("%.1f", percents(r.share(good+soon-window, good+soon))), spread("%.1f", percents(r.share(good+soon, queries))), spread("%.0f", r.until(good, over(comeBack))))
	}
	p.plot("share-drift", "Share of queries that ask the model that goes bad")
}

// seeds has the errors of each seed.
func (p *page) seeds(results []*result) {
	head := []string{"error, %, by seed"}
	for seed := range seeds {
		head = append(head, fmt.Sprint(seed))
	}
	p.table(head...)
	line := func(name string, errors []float64) {
		cells := []string{name}
		for _, e := range percents(errors) {
			cells = append(cells, fmt.Sprintf("%.1f", e))
		}
		p.row(cells...)
	}
	line("best single model", results[0].bestErrors())
	for _, r := range results {
		line("`"+r.policy+"`", r.errors())
	}
	p.WriteString("\n")
}

// promises says what must hold and whether it does.
func (p *page) promises(bars []bar) {
	p.say("## What is promised")
	p.say("Each must hold for %d of %d seeds, or `make selection` fails.", seeds-1, seeds)
	p.table("policy", "promise", "median", "seeds")
	for _, b := range bars {
		p.row("`"+b.policy+"`", b.what, fmt.Sprintf("%.1f %%", 100*b.median), fmt.Sprintf("%d of %d", b.good, seeds))
	}
	p.WriteString("\n")
}
