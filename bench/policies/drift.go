package main

// window is how many queries a share is taken of.
const window = 200

// share is, by seed, of how many of the queries from and before to the model that goes
// bad is the one that is asked, or of policies that ask several, ranked first.
func (r *result) share(from, to int) []float64 {
	var list []float64
	for i, t := range r.traces {
		list = append(list, t.share(r.streams[i].drift.model, from, to))
	}
	return list
}

func (t *trace) share(model, from, to int) float64 {
	n := 0
	for _, first := range t.first[from:to] {
		if first == model {
			n++
		}
	}
	return float64(n) / float64(to-from)
}

// until is, by seed, after how many queries from a moment on the share in the window
// before has first passed a test, or as many as there are.
func (r *result) until(from int, passes func(share float64) bool) []float64 {
	var list []float64
	for i, t := range r.traces {
		to := from + window
		for to < len(t.first) && !passes(t.share(r.streams[i].drift.model, to-window, to)) {
			to++
		}
		list = append(list, float64(to-from))
	}
	return list
}

func under(x float64) func(float64) bool { return func(y float64) bool { return y < x } }
func over(x float64) func(float64) bool  { return func(y float64) bool { return y > x } }

func count(list []float64, passes func(float64) bool) int {
	n := 0
	for _, x := range list {
		if passes(x) {
			n++
		}
	}
	return n
}
