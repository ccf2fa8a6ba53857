// Package check is how parts of the system are found to be, and what to do about those that are not well: on the
// doctor's list, among the servers of a cluster, and as alarms.
package check

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"
)

// State is how a check went.
type State string

// The states: Warn works, and should not stay so; Failed does not work.
const (
	OK     State = "ok"
	Warn   State = "warn"
	Failed State = "failed"
)

// Finding is what was found of one thing.
type Finding struct {
	Kind    string    `json:"kind,omitempty"` // of an object that is managed: "app", "version", "replica" or "stream"; else "server", or empty
	Name    string    `json:"name"`           // of the object, or of what was checked
	State   State     `json:"state"`
	Detail  string    `json:"detail"`
	Next    string    `json:"next,omitempty"` // what to do; empty where nothing is to be done
	Checked time.Time `json:"checked,omitzero"`

	Withdrawn string `json:"withdrawn,omitempty"` // the version that the policy of the app has withdrawn, as model:version
}

// Good is a finding that asks for nothing.
func Good(name, format string, args ...any) Finding {
	return Finding{Name: name, State: OK, Detail: fmt.Sprintf(format, args...)}
}

// Warning is a finding of what works, and should not stay so.
func Warning(name, detail, next string) Finding {
	return Finding{Name: name, State: Warn, Detail: detail, Next: next}
}

// Bad is a finding of what does not work.
func Bad(name, detail, next string) Finding {
	return Finding{Name: name, State: Failed, Detail: detail, Next: next}
}

// Broken is Bad with the error of a check, whose context says why it ended.
func Broken(ctx context.Context, name string, err error, next string) Finding {
	if cause := context.Cause(ctx); cause != nil && errors.Is(err, ctx.Err()) {
		err = cause
	}
	return Bad(name, err.Error(), next)
}

// Problems are the findings that ask for something, the worst first.
func Problems(all []Finding) []Finding {
	bad := slices.DeleteFunc(slices.Clone(all), func(f Finding) bool { return f.State == OK })
	slices.SortStableFunc(bad, func(a, b Finding) int { return cmp.Compare(a.State, b.State) }) // failed, warn
	return bad
}

// Within bounds each check.
const Within = 5 * time.Second

// Check looks at one part of the system.
type Check func(ctx context.Context) []Finding

// Run runs all checks at once, and lists what they found in their order.
func Run(ctx context.Context, checks []Check) []Finding {
	found := make([][]Finding, len(checks))
	var all sync.WaitGroup
	for i, check := range checks {
		all.Go(func() {
			ctx, cancel := context.WithTimeoutCause(ctx, Within, fmt.Errorf("no answer within %v", Within))
			defer cancel()
			found[i] = check(ctx)
		})
	}
	all.Wait()
	list, now := slices.Concat(found...), time.Now().UTC()
	for i, f := range list {
		list[i] = f.tidy()
		list[i].Checked = now
	}
	return list
}

// userInfo is a user's name and password in a URL, or in what was meant as one.
var userInfo = regexp.MustCompile(`(?:(://)[^@\s"]*|[^\s"/]+:[^\s"/]*)(?:@|%40)`)

// tidy makes a finding one line of each, without passwords of URLs: errors quote them.
func (f Finding) tidy() Finding {
	f.Detail = userInfo.ReplaceAllString(strings.Join(strings.Fields(f.Detail), " "), "$1")
	return f
}
