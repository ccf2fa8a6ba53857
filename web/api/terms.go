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

// admits says whose queries are taken.
func (e *effects) admits(before, after *serving.App) {
	switch {
	case after.RequireKey && !before.RequireKey:
		e.say("Queries to app %q must show a key from now on.", after.Name)
	case before.RequireKey && !after.RequireKey:
		e.say("Queries to app %q need no key any more.", after.Name)
	}
	switch {
	case reflect.DeepEqual(before.Limit, after.Limit):
	case after.Limit == nil:
		e.say("App %q takes any number of queries from now on; it took %s.", after.Name, rate(before.Limit))
	case before.Limit == nil:
		e.say("App %q takes %s from now on, and refuses more.", after.Name, rate(after.Limit))
	default:
		e.say("App %q takes %s from now on, and refuses more; it took %s.", after.Name, rate(after.Limit), rate(before.Limit))
	}
}

func rate(l *serving.Limit) string {
	text := fmt.Sprintf("%v queries a second", l.PerSecond)
	if l.Burst > 0 {
		text += fmt.Sprintf(", or %d at once,", l.Burst)
	}
	return text + " at each gateway"
}

// speaks says what queries and answers are like.
func (e *effects) speaks(before, after *serving.App) {
	if before.InputType != after.InputType {
		e.say("App %q takes %v from now on; it took %v.", after.Name, after.InputType, before.InputType)
	}
	for _, one := range []struct {
		what string
		same bool
	}{
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
