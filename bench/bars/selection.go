package main

import (
	"context"
	"slices"
	"time"

	"github.com/topsail-serving/topsail/serving"
)

const (
	// busyRate is for processor times of a gateway that does not work to capacity.
	busyRate = 1000.0
	// calmRate is for latencies: that of a query, not of the queue before it.
	calmRate = 50.0

	// unhurried is an SLO that waits for every model.
	unhurried = 10 * time.Second
	// decideWithin is the time limit of policies that have one.
	decideWithin = 10 * time.Millisecond
)

// selection has three parts, each with models of its own.
func selection(ctx context.Context, b *bench) (figures []figure, err error) {
	for _, part := range []func(context.Context, *bench) ([]figure, error){fourAsked, oneStalled, oneSlow} {
		more, err := part(ctx, b)
		b.family.stop()
		if err != nil {
			return nil, err
		}
		figures = append(figures, more...)
	}
	return figures, nil
}

// fourAsked compares the gateway's processor time of asking four models and one.
func fourAsked(ctx context.Context, b *bench) ([]figure, error) {
	four, one, err := b.fourAndOne(ctx)
	if err != nil {
		return nil, err
	}
	full, err := alternate(b.Runs, b.driver(ctx, four, many), b.driver(ctx, one, many))
	if err != nil {
		return nil, err
	}
	part, err := alternate(b.Runs, b.keeper(ctx, four, busyRate, ""), b.keeper(ctx, one, busyRate, ""))
	if err != nil {
		return nil, err
	}
	gateway := func(d drive) float64 { return d.cpuPerAnswer("gateway") }
	return []figure{
		sampled("one model: whole path", perSecond, bar{}, full[1], rate),
		sampled("vote of four: whole path", perSecond, bar{}, full[0], rate),
		sampled("one model: processor time of an answer, gateway", micros, bar{}, full[1], gateway),
		sampled("vote of four: processor time of an answer, gateway", micros, bar{}, full[0], gateway),
		compared("four models / one: processor time, gateway", times, below(2.5), full[0], full[1], func(four, one drive) float64 { return gateway(four) / gateway(one) }),
		compared("four models / one: the same at 1,000 queries/s", times, below(2.5), part[0], part[1], func(four, one steady) float64 { return four.cpuPerAnswer() / one.cpuPerAnswer() }),
		sampled("four models and one: default outputs", count, none(), slices.Concat(full...), defaults),
		sampled("four models and one: queries without a prediction, at 1,000 queries/s", count, none(), slices.Concat(part...), steady.unanswered),
	}, nil
}

// fourAndOne are two gateways for the same models: one asks four, the other the first.
func (b *bench) fourAndOne(ctx context.Context) (four, one *target, err error) {
	s := setup{SLO: relaxed, CacheOff: true, Containers: slices.Repeat([]string{"noop"}, 4)}
	models, err := b.models(ctx, s)
	if err != nil {
		return nil, nil, err
	}
	s.Policy.Kind = serving.PolicyVote
	if four, err = b.gateway(ctx, "vote of four models", s, models); err != nil {
		return nil, nil, err
	}
	s.Policy.Kind, s.Containers = serving.PolicySingle, s.Containers[:1]
	if one, err = b.gateway(ctx, "one model", s, models[:1]); err != nil {
		return nil, nil, err
	}
	if err = b.warm(ctx, four); err != nil {
		return nil, nil, err
	}
	return four, one, b.warm(ctx, one)
}

// oneStalled asks ten models, one of which never answers. Each run has models of its own,
// because a sidecar gives a stalled container up after some seconds.
func oneStalled(ctx context.Context, b *bench) ([]figure, error) {
	s := setup{SLO: promise, CacheOff: true, Containers: append(slices.Repeat([]string{"noop"}, 9), "stall")}
	s.Policy.Kind = serving.PolicyMean
	runs, err := alternate(b.Runs, func() (steady, error) {
		defer b.family.stop()
		t, err := b.launch(ctx, "mean of ten models, one stalled", s)
		if err != nil {
			return steady{}, err
		}
		return b.keep(ctx, t, calmRate, modelVersion(9).String(), b.period())
	})
	if err != nil {
		return nil, err
	}
	inTime := atMost(millis(promise) + 2)
	return []figure{
		sampled("ten models, one stalled: p99", ms, inTime, runs[0], steady.p99),
		sampled("ten models, one stalled: the longest", ms, inTime, runs[0], steady.max),
		sampled("ten models, one stalled: queries without a prediction", count, none(), runs[0], steady.unanswered),
		sampled("ten models, one stalled: answers that do not name it as missing", count, none(), runs[0], func(s steady) float64 { return float64(s.unnamed) }),
	}, nil
}

// oneSlow asks five models, one of which is slow at random, by policies that need not
// wait for it and by one that does.
func oneSlow(ctx context.Context, b *bench) ([]figure, error) {
	s := setup{SLO: unhurried, CacheOff: true, Containers: append(slices.Repeat([]string{"sure"}, 4), "pareto")}
	models, err := b.models(ctx, s)
	if err != nil {
		return nil, err
	}
	within := decideWithin.Microseconds()
	policies := []serving.PolicySpec{
		{Kind: serving.PolicyMean},
		{Kind: serving.PolicyGuaranteed, WithinMicros: within},
		{Kind: serving.PolicyFirstAcceptable},
		{Kind: serving.PolicyVote, WithinMicros: within},
	}
	var variants []func() (steady, error)
	for _, s.Policy = range policies {
		t, err := b.gateway(ctx, s.Policy.Kind+" of five models, one slow", s, models)
		if err != nil {
			return nil, err
		}
		if _, err := b.keep(ctx, t, calmRate, "", time.Second); err != nil { // to warm up
			return nil, err
		}
		variants = append(variants, b.keeper(ctx, t, calmRate, ""))
	}
	runs, err := alternate(b.Runs, variants...)
	if err != nil {
		return nil, err
	}
	return slowFigures(policies, runs), nil
}

// slowFigures compares the policies with the first, which waits for all.
func slowFigures(policies []serving.PolicySpec, runs [][]steady) []figure {
	const five = "five models, one slow at random: "
	all := runs[0]
	figures := []figure{sampled(five+policies[0].Kind+", which waits for all: p99", ms, bar{}, all, steady.p99)}
	for i, p := range policies[1:] {
		own := runs[i+1]
		figures = append(figures,
			sampled(five+p.Kind+": p99", ms, bar{}, own, steady.p99),
			compared(five+p.Kind+" / waiting for all", times, bar{}, own, all, func(own, all steady) float64 { return own.p99() / all.p99() }))
	}
	return append(figures, sampled(five+"queries without a prediction", count, none(), slices.Concat(runs...), steady.unanswered))
}
