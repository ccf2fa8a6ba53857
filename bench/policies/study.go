package main

import (
	"fmt"

	"github.com/topsail-serving/topsail/gateway/selection"
	"github.com/topsail-serving/topsail/serving"
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

// studies are all that are made.
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
		{name: numbers, table: "numbers", output: serving.OutputNumber, loss: serving.LossSquared, scale: 9, policies: []string{
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
		Name: "lab", InputType: serving.Doubles, OutputType: s.output, SLO: serving.Duration(budget), Models: t.names(),
		Policy: serving.PolicySpec{Kind: kind, Loss: s.loss, Scale: s.scale},
	}
	if kind == serving.PolicyCascade {
		app.Policy.Models = t.byTime()
	}
	return app
}
