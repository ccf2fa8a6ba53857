package main

import (
	"encoding/json"
	"fmt"
	"os"
	"slices"
)

// plot is what plots.py draws: lines over queries, or dots by group.
type plot struct {
	File   string  `json:"file"` // without its suffix
	Title  string  `json:"title"`
	X      string  `json:"x"`
	Y      string  `json:"y"`
	Marks  []int   `json:"marks,omitempty"`  // queries at which something changes
	Levels []level `json:"levels,omitempty"` // what is promised
	Lines  []line  `json:"lines,omitempty"`
	Groups []group `json:"groups,omitempty"`
}

// level is a horizontal line between two queries.
type level struct {
	At   float64 `json:"at"`
	From int     `json:"from"`
	To   int     `json:"to"`
}

// line is a median over seeds with its range.
type line struct {
	Name   string    `json:"name"`
	X      []int     `json:"queries"`
	Middle []float64 `json:"middle"`
	Low    []float64 `json:"low"`
	High   []float64 `json:"high"`
}

// group is a value for each seed.
type group struct {
	Name   string    `json:"name"`
	Values []float64 `json:"values"`
}

const points = 120 // of a line

// writePlots writes what is drawn.
func writePlots(path string, results map[string][]*result, queries int) error {
	const regret = "errors so far minus the best single model's"
	bad, good := queries/3, queries*2/3
	plots := []plot{
		{File: "regret-stationary", Title: "Nothing changes: errors beyond the best single model", X: "queries", Y: regret, Lines: regrets(results[stationary], queries)},
		{File: "regret-drift", Title: "The best model goes bad and recovers: errors beyond the best single model", X: "queries", Y: regret, Marks: []int{bad, good}, Lines: regrets(results[drifting], queries)},
		{File: "share-drift", Title: "Who still asks the model that goes bad", X: "queries", Y: fmt.Sprintf("its share of the last %d queries", window), Marks: []int{bad, good},
			Levels: []level{{leaves, bad + queries/12, good}, {comeBack, good + queries/12, queries}}, Lines: shares(results[drifting], queries)},
		{File: "ensembles", Title: "Five models, each with 16 of the 64 pixels", X: "shuffle and choice of pixels", Y: "error, %", Groups: groups(results[ensembles], 100)},
		{File: "regret-specialists", Title: "Five experts for two digits each: errors beyond the best single expert", X: "queries", Y: regret, Lines: regrets(results[specialists], queries)},
		{File: "numbers", Title: "The digit as a number, from five models with 8 to 24 pixels", X: "shuffle and choice of pixels", Y: "mean squared error", Groups: groups(results[numbers], 81)},
		{File: "odd", Title: "Odd or even, from five models of which one is the wrong way round", X: "shuffle and choice of pixels", Y: "error, %", Groups: groups(results[odd], 100)},
	}
	text, err := json.Marshal(plots)
	if err != nil {
		return fmt.Errorf("write plots: %w", err)
	}
	return os.WriteFile(path, text, 0o644)
}

// regrets has a line for each policy.
func regrets(results []*result, queries int) []line {
	var lines []line
	for _, r := range results {
		l := line{Name: r.policy}
		for i := range points + 1 {
			n := queries * i / points
			l.add(n, r.regret(n))
		}
		lines = append(lines, l)
	}
	return lines
}

// shares has a line for each policy that asks one model.
func shares(results []*result, queries int) []line {
	var lines []line
	for _, r := range results {
		if slices.Max(r.asked()) > 1 {
			continue
		}
		l := line{Name: r.policy}
		for n := window; n <= queries; n += max(queries/points, 1) {
			l.add(n, r.share(n-window, n))
		}
		lines = append(lines, l)
	}
	return lines
}

func (l *line) add(query int, list []float64) {
	l.X = append(l.X, query)
	l.Middle, l.Low, l.High = append(l.Middle, median(list)), append(l.Low, slices.Min(list)), append(l.High, slices.Max(list))
}

// groups has the errors of the best single model, and of each policy, in some unit.
func groups(results []*result, unit float64) []group {
	list := []group{{"best single model", results[0].bestErrors()}}
	for _, r := range results {
		list = append(list, group{r.policy, r.errors()})
	}
	for _, g := range list {
		for i := range g.Values {
			g.Values[i] *= unit
		}
	}
	return list
}
