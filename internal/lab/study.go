package main

import (
	"fmt"

	"topsail/gateway/selection"
	"topsail/serving"
)

// seeds is how many shuffles each policy is replayed with.
const seeds = 10

// study is one question: policies that get the same streams.
type study struct {
	name     string
	table    string
	drifting bool
	output   serving.OutputType
	loss     string
	scale    float64
	policies []string
}

// studies are all that are made. The names of the first two are those of the issue's
// promises.
func studies() []study {
	return []study{
		{name: stationary, table: "five", output: serving.OutputLabel, policies: []string{
			serving.PolicyEpsilonGreedy, serving.PolicyUCB1, serving.PolicyThompson, serving.PolicyExp3, serving.PolicyLinUCB,
			serving.PolicyExp4, serving.PolicyVote, serving.PolicyBest, serving.PolicyCascade, serving.PolicyFirstAcceptable,
		}},
		{name: drifting, table: "five", drifting: true, output: serving.OutputLabel, policies: []string{
			serving.PolicyEpsilonGreedy, serving.PolicyUCB1, serving.PolicyThompson, serving.PolicyExp3, serving.PolicyLinUCB,
			serving.PolicyExp4, serving.PolicyVote, serving.PolicyBest,
		}},
		{name: ensembles, table: "pixels", output: serving.OutputLabel, policies: []string{
			serving.PolicyVote, serving.PolicyExp4, serving.PolicyBest, serving.PolicyCascade, serving.PolicyThompson,
		}},
		{name: specialists, table: "specialists", output: serving.OutputLabel, policies: []string{
			serving.PolicyLinUCB, serving.PolicyThompson, serving.PolicyUCB1, serving.PolicyExp3, serving.PolicyExp4, serving.PolicyVote, serving.PolicyBest,
		}},
		{name: numbers, table: "numbers", output: serving.OutputNumber, loss: serving.LossAbsolute, scale: 9, policies: []string{
			serving.PolicyStacking, serving.PolicyExp4, serving.PolicyMean, serving.PolicyMedian, serving.PolicyThompson,
		}},
		{name: odd, table: "odd", output: serving.OutputNumber, policies: []string{
			serving.PolicyLogistic, serving.PolicyVote, serving.PolicyThompson,
		}},
	}
}

const (
	stationary  = "stationary"
	drifting    = "drift"
	ensembles   = "ensembles"
	specialists = "specialists"
	numbers     = "numbers"
	odd         = "odd"
)

// result is what one policy did in a study.
type result struct {
	policy  string
	streams []*stream // by seed
	traces  []*trace  // by seed
}

// run replays every policy with every seed.
func (s *study) run(tables []*Table, queries int) ([]*result, error) {
	var streams []*stream
	for seed := range seeds {
		t, err := find(tables, s.table, seed)
		if err != nil {
			return nil, err
		}
		one, err := newStream(t, uint64(seed), queries, s.drifting, selection.LossOf(&serving.PolicySpec{Loss: s.loss, Scale: s.scale}))
		if err != nil {
			return nil, fmt.Errorf("seed %d: %w", seed, err)
		}
		streams = append(streams, one)
	}
	var results []*result
	for _, kind := range s.policies {
		r := &result{policy: kind, streams: streams}
		for seed, one := range streams {
			t, err := s.replay(kind, one, uint64(seed))
			if err != nil {
				return nil, fmt.Errorf("%s, seed %d: %w", kind, seed, err)
			}
			r.traces = append(r.traces, t)
		}
		results = append(results, r)
	}
	return results, nil
}

func (s *study) replay(kind string, one *stream, seed uint64) (*trace, error) {
	r, err := newReplayer(s.app(kind, one.table), one, seed)
	if err != nil {
		return nil, err
	}
	return r.replay()
}

// app is one with a policy and its defaults, and every model of a table.
func (s *study) app(kind string, t *Table) *serving.App {
	app := &serving.App{
		Name: "lab", InputType: serving.Doubles, OutputType: s.output, SLO: budget, Models: t.names(),
		Policy: serving.PolicySpec{Kind: kind, Loss: s.loss, Scale: s.scale},
	}
	if kind == serving.PolicyCascade {
		app.Policy.Models = t.byTime()
	}
	return app
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
