package main

import (
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/topsail-serving/topsail/serving"
)

// Table is what some models said to samples that they had not been trained on.
type Table struct {
	Name   string      `json:"name"`
	Seed   int         `json:"seed"`
	Inputs [][]float64 `json:"inputs"` // by sample; none where no policy looks at them
	Labels []float64   `json:"labels"` // by sample
	Models []Model     `json:"models"` // sorted by name
}

// Model is what one model said.
type Model struct {
	Name       string    `json:"name"`
	Micros     int64     `json:"micros"`     // how long it is taken to need for an answer
	Outputs    []float64 `json:"outputs"`    // by sample
	Confidence []float64 `json:"confidence"` // by sample; may be empty
	Degraded   []float64 `json:"degraded"`   // by sample, what it says when it has gone bad; may be empty
}

// readTables reads what models.py wrote.
func readTables(path string) ([]*Table, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("read the models' outputs (make selection makes them): %w", err)
	}
	var tables []*Table
	if err := json.Unmarshal(text, &tables); err != nil {
		return nil, fmt.Errorf("read %s: %w", path, err)
	}
	for _, t := range tables {
		if err := t.check(); err != nil {
			return nil, fmt.Errorf("read %s: table %s, seed %d: %w", path, t.Name, t.Seed, err)
		}
		slices.SortFunc(t.Models, func(a, b Model) int { return strings.Compare(a.Name, b.Name) })
	}
	return tables, nil
}

func (t *Table) check() error {
	n := len(t.Labels)
	if n == 0 || len(t.Models) == 0 {
		return fmt.Errorf("it has %d samples and %d models", n, len(t.Models))
	}
	fits := func(list int) bool { return list == 0 || list == n }
	if !fits(len(t.Inputs)) {
		return fmt.Errorf("it has %d inputs for %d samples", len(t.Inputs), n)
	}
	for i := range t.Models {
		if m := &t.Models[i]; len(m.Outputs) != n || !fits(len(m.Confidence)) || !fits(len(m.Degraded)) {
			return fmt.Errorf("model %s does not say as much as there are samples", m.Name)
		}
	}
	return nil
}

// find is the table of a name for a seed: its own, or the one for all.
func find(tables []*Table, name string, seed int) (*Table, error) {
	var shared *Table
	for _, t := range tables {
		switch {
		case t.Name == name && t.Seed == seed:
			return t, nil
		case t.Name == name && t.Seed == 0:
			shared = t
		}
	}
	if shared == nil {
		return nil, fmt.Errorf("there is no table %q: run models.py again", name)
	}
	return shared, nil
}

// names are those of the models.
func (t *Table) names() []string {
	var list []string
	for i := range t.Models {
		list = append(list, t.Models[i].Name)
	}
	return list
}

// byTime are the models' names, the fastest first.
func (t *Table) byTime() []string {
	models := slices.Clone(t.Models)
	slices.SortStableFunc(models, func(a, b Model) int { return int(a.Micros - b.Micros) })
	return (&Table{Models: models}).names()
}

// id names a model as candidates and states do.
func (m *Model) id() serving.ModelID { return serving.ModelID{Model: m.Name, Version: "1"} }

// output is one number as the model would have sent it.
func (m *Model) output(said []float64, sample int) (*serving.Output, error) {
	o, err := serving.NewOutput(serving.Number(said[sample]))
	if err == nil && len(m.Confidence) > 0 {
		o.Confidence = &m.Confidence[sample]
	}
	return o, err
}
