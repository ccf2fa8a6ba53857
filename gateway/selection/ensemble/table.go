package ensemble

import (
	"encoding/binary"
	"math"

	"github.com/topsail-serving/topsail/gateway/selection"
	"github.com/topsail-serving/topsail/serving"
)

// table holds what models said in numbers: a row for each, of its weight and then its
// numbers. A number is a vector of one.
type table struct {
	cells []float64 // in the plan's scratch memory
	width int       // of a row, the weight included
}

// gather makes the table of the answers that have come. Of vectors that differ in
// length those of the most frequent length count, or else of the first-ranked.
func gather(plan *selection.Plan, answers []selection.Answer, takes serving.OutputType) table {
	cells := plan.Scratch[:0] // rows of length, weight and numbers, at first
	for i := range answers {
		if o := answers[i].Output; o != nil {
			at := len(cells)
			all, ok := appendNumbers(append(cells, 0, plan.Asks[i].Weight), o, takes)
			cells = all[:at]
			if ok {
				cells = all
				cells[at] = float64(len(all) - at)
			}
		}
	}
	plan.Scratch = cells
	return level(cells)
}

func appendNumbers(dst []float64, o *serving.Output, takes serving.OutputType) ([]float64, bool) {
	if takes == serving.OutputVector {
		return vector(dst, o)
	}
	x, ok := number(o)
	return append(dst, x), ok
}

// level keeps the rows of the most frequent length, without their lengths.
func level(ragged []float64) table {
	length, rows := 0.0, 0
	for at := 0; at < len(ragged); at += int(ragged[at]) {
		if ragged[at] == length {
			continue // counted
		}
		if n := equals(ragged, ragged[at]); n > rows {
			length, rows = ragged[at], n
		}
	}
	t := table{cells: ragged[:0], width: int(length) - 1}
	for at := 0; at < len(ragged); {
		next := at + int(ragged[at]) // read before the rows move over it
		if ragged[at] == length {
			t.cells = append(t.cells, ragged[at+1:next]...)
		}
		at = next
	}
	return t
}

// equals is how many rows have a length.
func equals(ragged []float64, length float64) (rows int) {
	for at := 0; at < len(ragged); at += int(ragged[at]) {
		if ragged[at] == length {
			rows++
		}
	}
	return rows
}

// rows is how many models there are in the table.
func (t *table) rows() int {
	if t.width < 1 {
		return 0
	}
	return len(t.cells) / t.width
}

// mean is the weighted mean of a column; columns count from 1. The weights add up to at
// most 1, so that only rounding could make the sum of the largest numbers too large.
func (t *table) mean(column int) float64 {
	weights, total := 0.0, 0.0
	for at := 0; at < len(t.cells); at += t.width {
		weights += t.cells[at]
		total += t.cells[at] * t.cells[at+column]
	}
	return clamp(total/weights, math.MaxFloat64)
}

// value is one number for each column, made by the function given.
func (t *table) value(takes serving.OutputType, of func(column int) float64) serving.Value {
	if takes != serving.OutputVector {
		return serving.Number(of(1))
	}
	v := serving.Value{DType: serving.Float64, Shape: []int{t.width - 1}, Data: make([]byte, 0, 8*(t.width-1))}
	for column := 1; column < t.width; column++ {
		v.Data = binary.LittleEndian.AppendUint64(v.Data, math.Float64bits(of(column)))
	}
	return v
}

// average is the decision for the weighted mean: when nothing more is waited for.
func average(plan *selection.Plan, answers []selection.Answer, takes serving.OutputType, at selection.Moment) selection.Decision {
	why, over := ended(answers, at)
	if !over {
		return selection.Decision{}
	}
	t := gather(plan, answers, takes)
	if t.rows() == 0 {
		return failed(plan, answers, takes, why)
	}
	return made(t.value(takes, t.mean), why)
}
