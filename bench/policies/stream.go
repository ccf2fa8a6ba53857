package main

import (
	"encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"

	"github.com/topsail-serving/topsail/gateway/selection"
	"github.com/topsail-serving/topsail/serving"
)

// stream is a replay of a table in a random order: repeatedly all of its samples, each time
// shuffled anew. It is immutable.
type stream struct {
	table   *Table
	order   []int // of samples, by query
	inputs  []serving.Input
	labels  []*serving.Output   // by sample
	outputs [][]*serving.Output // by model and sample
	drift   *drift
	losses  [][]float64 // by model and query
}

// drift is a model that goes bad and recovers.
type drift struct {
	model    int
	from, to int               // the queries between which it is bad
	outputs  []*serving.Output // what it says then, by sample
}

// newStream shuffles a table. With drifting, the model that can go bad does so for the
// second third.
func newStream(t *Table, seed uint64, queries int, drifting bool, loss selection.Loss) (*stream, error) {
	s := &stream{table: t}
	r := rand.New(rand.NewPCG(seed, 0))
	for len(s.order) < queries {
		s.order = append(s.order, r.Perm(len(t.Labels))...)
	}
	s.order = s.order[:queries]
	if err := s.render(); err != nil {
		return nil, err
	}
	if drifting {
		if err := s.degrade(); err != nil {
			return nil, err
		}
	}
	return s, s.judge(loss)
}

// render makes inputs and outputs of the numbers.
func (s *stream) render() (err error) {
	t := s.table
	s.inputs, s.labels = make([]serving.Input, len(t.Labels)), make([]*serving.Output, len(t.Labels))
	for i, x := range t.Labels {
		if s.labels[i], err = serving.NewOutput(serving.Number(x)); err != nil {
			return fmt.Errorf("label %d: %w", i, err)
		}
		s.inputs[i].Type = serving.Doubles
		if len(t.Inputs) > 0 {
			s.inputs[i] = doubles(t.Inputs[i])
		}
	}
	s.outputs = make([][]*serving.Output, len(t.Models))
	for i := range t.Models {
		if s.outputs[i], err = rendered(&t.Models[i], t.Models[i].Outputs); err != nil {
			return err
		}
	}
	return nil
}

func rendered(m *Model, said []float64) ([]*serving.Output, error) {
	list := make([]*serving.Output, len(said))
	for i := range said {
		o, err := m.output(said, i)
		if err != nil {
			return nil, fmt.Errorf("model %s, sample %d: %w", m.Name, i, err)
		}
		list[i] = o
	}
	return list, nil
}

func doubles(list []float64) serving.Input {
	in := serving.Input{Type: serving.Doubles}
	for _, x := range list {
		in.Data = binary.LittleEndian.AppendUint64(in.Data, math.Float64bits(x))
	}
	return in
}

func (s *stream) degrade() error {
	for i := range s.table.Models {
		m := &s.table.Models[i]
		if len(m.Degraded) == 0 {
			continue
		}
		outputs, err := rendered(m, m.Degraded)
		s.drift = &drift{model: i, from: len(s.order) / 3, to: len(s.order) * 2 / 3, outputs: outputs}
		return err
	}
	return fmt.Errorf("no model of table %s can go bad", s.table.Name)
}

// judge finds out how wrong each model is at each query.
func (s *stream) judge(loss selection.Loss) (err error) {
	s.losses = make([][]float64, len(s.outputs))
	for m := range s.losses {
		s.losses[m] = make([]float64, len(s.order))
		for q := range s.order {
			if s.losses[m][q], err = loss.Of(s.output(m, q), s.label(q)); err != nil {
				return fmt.Errorf("model %s, query %d: %w", s.table.Models[m].Name, q, err)
			}
		}
	}
	return nil
}

// output is what a model says to a query.
func (s *stream) output(model, query int) *serving.Output {
	if d := s.drift; d != nil && d.model == model && query >= d.from && query < d.to {
		return d.outputs[s.order[query]]
	}
	return s.outputs[model][s.order[query]]
}

func (s *stream) input(query int) serving.Input   { return s.inputs[s.order[query]] }
func (s *stream) label(query int) *serving.Output { return s.labels[s.order[query]] }

// best is the model with the smallest loss over the whole stream: the best single one
// in hindsight.
func (s *stream) best() int {
	best, least := 0, math.Inf(1)
	for m := range s.losses {
		if total := sum(s.losses[m]); total < least {
			best, least = m, total
		}
	}
	return best
}

func sum(list []float64) float64 {
	total := 0.0
	for _, x := range list {
		total += x
	}
	return total
}
