package e2e

import (
	"encoding/binary"
	"errors"
	"math"
	"time"

	"github.com/topsail-serving/topsail/containers/gocontainer"
	"github.com/topsail-serving/topsail/serving"
)

// model answers one query.
type model func(q gocontainer.Query) gocontainer.Result

// predict answers a batch, which takes a millisecond: with models that take no time, time would stand
// still for who asks again and again.
func (m model) predict(queries []gocontainer.Query) (all []gocontainer.Result) {
	time.Sleep(time.Millisecond)
	for _, q := range queries {
		all = append(all, m(q))
	}
	return all
}

// says always gives the same text.
func says(text string) model {
	return func(gocontainer.Query) gocontainer.Result { return gocontainer.Result{Output: serving.Text(text)} }
}

// fails always gives an error.
func fails(text string) model {
	return func(gocontainer.Query) gocontainer.Result { return gocontainer.Result{Err: errors.New(text)} }
}

// sum adds up the numbers of an input.
func sum(q gocontainer.Query) gocontainer.Result {
	total := 0.0
	for data := q.Inputs[0].Data; len(data) > 0; data = data[8:] {
		total += math.Float64frombits(binary.LittleEndian.Uint64(data))
	}
	return gocontainer.Result{Output: serving.Number(total)}
}

// sure says how sure the model is.
func (m model) sure(confidence float64) model {
	return func(q gocontainer.Query) gocontainer.Result {
		r := m(q)
		r.Confidence = &confidence
		return r
	}
}

// beside says something beside the output.
func (m model) beside(name, text string) model {
	return func(q gocontainer.Query) gocontainer.Result {
		r, v := m(q), serving.Text(text)
		v.Name = name
		r.Qualifiers = append(r.Qualifiers, v)
		return r
	}
}

// counted counts queries.
func (m model) counted(n *int) model {
	return func(q gocontainer.Query) gocontainer.Result {
		*n++
		return m(q)
	}
}

// after takes longer for each query.
func (m model) after(d time.Duration) model {
	return func(q gocontainer.Query) gocontainer.Result {
		time.Sleep(d)
		return m(q)
	}
}
