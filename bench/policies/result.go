package main

// result is what one policy did in a study.
type result struct {
	policy  string
	streams []*stream // by seed
	traces  []*trace  // by seed
}

// errors are the mean losses of the answers, by seed.
func (r *result) errors() []float64 {
	var list []float64
	for _, t := range r.traces {
		list = append(list, sum(t.losses)/float64(len(t.losses)))
	}
	return list
}

// bestErrors are those of the best single model in hindsight, by seed.
func (r *result) bestErrors() []float64 {
	var list []float64
	for _, s := range r.streams {
		list = append(list, sum(s.losses[s.best()])/float64(len(s.order)))
	}
	return list
}

// regret is, by seed, by how much the losses of the answers to the first queries exceed
// those of the best single model of the whole stream.
func (r *result) regret(queries int) []float64 {
	var list []float64
	for i, t := range r.traces {
		s := r.streams[i]
		list = append(list, sum(t.losses[:queries])-sum(s.losses[s.best()][:queries]))
	}
	return list
}

// asked is how many models a query asked, by seed.
func (r *result) asked() []float64 {
	var list []float64
	for _, t := range r.traces {
		list = append(list, float64(t.asked)/float64(len(t.losses)))
	}
	return list
}

// below says for how many seeds the error is below that of the best single model.
func (r *result) below() int {
	n, best := 0, r.bestErrors()
	for i, e := range r.errors() {
		if e < best[i] {
			n++
		}
	}
	return n
}
