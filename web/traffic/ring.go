package traffic

import "math"

// perChunk is how many steps a chunk has.
const perChunk = 60

// ring keeps several numbers a step for the last steps. Of a number that was never put
// into a chunk nothing is kept, which is most of them: apps rest, and causes are rare.
type ring struct {
	step    int64    // in seconds
	chunks  []*chunk // that of index i at i modulo their number
	columns int
}

// chunk is perChunk steps in a row.
type chunk struct {
	index   int64 // its first step over perChunk
	columns []*[perChunk]float32
}

// newRing keeps at least span seconds.
func newRing(step, span int64, columns int) ring {
	return ring{step: step, chunks: make([]*chunk, span/step/perChunk+1), columns: columns}
}

// cell is where a number of the step of a second is, NaN before anything was put there.
// It is nil for a step that is over the edge.
func (r *ring) cell(column int, second int64) *float32 {
	step := second / r.step
	index := step / perChunk
	at := &r.chunks[index%int64(len(r.chunks))]
	if *at == nil || (*at).index < index {
		*at = &chunk{index: index, columns: make([]*[perChunk]float32, r.columns)}
	}
	c := *at
	if c.index != index {
		return nil
	}
	if c.columns[column] == nil {
		c.columns[column] = unknowns()
	}
	return &c.columns[column][step%perChunk]
}

func unknowns() *[perChunk]float32 {
	all := &[perChunk]float32{}
	for i := range all {
		all[i] = float32(math.NaN())
	}
	return all
}

// at is a number of a step, counted in steps; NaN is unknown.
func (r *ring) at(column int, step int64) float64 {
	if step < 0 {
		return math.NaN()
	}
	index := step / perChunk
	c := r.chunks[index%int64(len(r.chunks))]
	if c == nil || c.index != index || c.columns[column] == nil {
		return math.NaN()
	}
	return float64(c.columns[column][step%perChunk])
}

// add adds to a number, which is 0 before.
func (r *ring) add(column int, second int64, v float64) {
	if c := r.cell(column, second); c != nil && *c == *c {
		*c += float32(v)
	} else if c != nil {
		*c = float32(v)
	}
}

// set puts a number in the place of what was there.
func (r *ring) set(column int, second int64, v float64) {
	if c := r.cell(column, second); c != nil {
		*c = float32(v)
	}
}

// raise puts a number where there is none, or a smaller one.
func (r *ring) raise(column int, second int64, v float64) {
	if c := r.cell(column, second); c != nil && !(float64(*c) >= v) {
		*c = float32(v)
	}
}
