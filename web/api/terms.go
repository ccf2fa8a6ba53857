package api

import (
	"cmp"
	"fmt"
	"reflect"
	"slices"
	"time"

	"github.com/topsail-serving/topsail/serving"
)

// terms says on what other terms an app answers.
func (e *effects) terms(before, after *serving.App) {
	if before.SLO != after.SLO {
		e.say("App %q answers within %v; it was %v.", after.Name, after.SLO.Std(), before.SLO.Std())
	}
	if before.ColdStart != after.ColdStart {
		e.say("Queries to app %q wait up to %v for the first replica of a model; it was %v.", after.Name, patience(after), patience(before))
	}
	e.chooses(before, after)
	e.admits(before, after)
	if was, is := cmp.Or(before.Weight, 1), cmp.Or(after.Weight, 1); was != is {
		e.say("App %q has the weight %v when capacity is short; it was %v.", after.Name, is, was)
	}
	e.speaks(before, after)
	if !slices.Equal(before.Labels, after.Labels) {
		e.say("App %q has other labels from now on.", after.Name)
	}
}

// patience is how long queries wait for the first replica of a model at zero.
func patience(app *serving.App) time.Duration { return max(app.SLO.Std(), app.ColdStart.Std()) }

// chooses says how models are chosen.
func (e *effects) chooses(before, after *serving.App) {
	was, is := before.Policy, after.Policy
	switch {
	case was.KindName() != is.KindName():
		e.say("App %q chooses by the policy %q from now on; it was %q.", after.Name, is.KindName(), was.KindName())
	case was.String() != is.String():
		e.say("The policy of app %q has other options from now on.", after.Name)
	}
}

// admits says which queries are accepted.
func (e *effects) admits(before, after *serving.App) {
	switch {
	case after.RequireKey && !before.RequireKey:
		e.say("Queries to app %q need a key from now on.", after.Name)
	case before.RequireKey && !after.RequireKey:
		e.say("Queries to app %q no longer need a key.", after.Name)
	}
	if before.Between() != after.Between() || before.Total() != after.Total() {
		e.say("Answers of app %q in parts have %v from one part to the next and %v in all from now on.", after.Name, after.Between(), after.Total())
	}
	switch {
	case before.Route == after.Route:
	case after.Route == serving.RoutePrefix:
		e.say("Queries of app %q that begin alike go to one replica from now on, as far as the load allows.", after.Name)
	default:
		e.say("Queries of app %q go to the replica with the shortest wait from now on.", after.Name)
	}
	switch {
	case after.ShareStreams && !before.ShareStreams:
		e.say("Equal queries of app %q that are in flight share one answer in parts from now on.", after.Name)
	case before.ShareStreams && !after.ShareStreams:
		e.say("Each query of app %q gets an answer in parts of its own from now on.", after.Name)
	}
	switch {
	case after.DefaultErrors && !before.DefaultErrors:
		e.say("Clients of the Open Inference Protocol and of OpenAI get an error from app %q in place of its default from now on.", after.Name)
	case before.DefaultErrors && !after.DefaultErrors:
		e.say("Clients of the Open Inference Protocol and of OpenAI get the default of app %q again, where it fits.", after.Name)
	}
	switch {
	case reflect.DeepEqual(before.Limit, after.Limit):
	case after.Limit == nil:
		e.say("App %q accepts any number of queries from now on; its limit was %s.", after.Name, rate(before.Limit))
	case before.Limit == nil:
		e.say("App %q accepts %s from now on, and refuses more.", after.Name, rate(after.Limit))
	default:
		e.say("App %q accepts %s from now on, and refuses more; its limit was %s.", after.Name, rate(after.Limit), rate(before.Limit))
	}
}

func rate(l *serving.Limit) string {
	text := fmt.Sprintf("%v queries a second", l.PerSecond)
	if l.Burst > 0 {
		text += fmt.Sprintf(", or %d at once,", l.Burst)
	}
	return text + " at each gateway"
}

// speaks describes the form of queries and answers.
func (e *effects) speaks(before, after *serving.App) {
	if before.InputType != after.InputType {
		e.say("App %q takes %v from now on; it took %v.", after.Name, after.InputType, before.InputType)
	}
	for _, one := range []struct {
		what string
		same bool
	}{
		{"signature", reflect.DeepEqual(before.Signature, after.Signature)},
		{"output type", before.OutputType == after.OutputType},
		{"default answer", before.DefaultOutput == after.DefaultOutput},
		{"use of the cache", before.Cache == after.Cache},
		{"example", before.Example == after.Example},
		{"description", before.Description == after.Description},
	} {
		if !one.same {
			e.say("App %q has another %s from now on.", after.Name, one.what)
		}
	}
}
