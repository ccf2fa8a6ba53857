package records

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"

	"github.com/topsail-serving/topsail/serving"
)

// Route is where the results go that fit all that it says; the first one of a job counts.
type Route struct {
	App        string            // that was asked; empty: any
	Default    *bool             // whether the output is the default; nil: either
	Class      string            // the output, where that is a text, a number or a boolean; empty: any
	Qualifiers map[string]string // values that stand beside the output

	Output string // the stream of these results
	Drop   bool   // or none: there is no result
}

const maxRoutes = 100

// checkRoutes says everything that is wrong with the routes of a job.
func (c *Config) checkRoutes() (errs []error) {
	wrong := func(format string, args ...any) {
		errs = append(errs, fmt.Errorf("stream %q: route: "+format, append([]any{c.Name}, args...)...))
	}
	if len(c.Routes) > maxRoutes {
		wrong("there are %d, and at most %d are possible", len(c.Routes), maxRoutes)
	}
	for _, r := range c.Routes {
		switch {
		case r.Drop == (r.Output != ""):
			wrong("each needs an output, or drop = true, and not both")
		case slices.Contains(c.Streams, r.Output):
			wrong("output %q is an input, too: what goes there would be read again forever", r.Output)
		}
		if r.App != "" && !slices.Contains(c.allApps(), r.App) {
			wrong("app %q is none of the stream's", r.App)
		}
	}
	return errs
}

// allApps are those that the configuration names.
func (c *Config) allApps() (all []string) {
	for _, text := range append(slices.Collect(maps.Values(c.Apps)), c.App) {
		all = append(all, serving.SplitApps(text)...)
	}
	return all
}

// outputs are all streams of results that a job may write to.
func (c *Config) outputs() []string {
	all := []string{c.Output}
	for _, r := range c.Routes {
		if r.Output != "" && !slices.Contains(all, r.Output) {
			all = append(all, r.Output)
		}
	}
	return all
}

// route is where the result of a prediction by an app goes.
func (c *Config) route(app string, p *serving.Prediction) (to string, drop bool) {
	for i := range c.Routes {
		if r := &c.Routes[i]; r.fits(app, p) {
			return r.Output, r.Drop
		}
	}
	return c.Output, false
}

func (r *Route) fits(app string, p *serving.Prediction) bool {
	if r.App != "" && r.App != app || r.Default != nil && *r.Default != p.Default || r.Class != "" && !isClass(p.Output, r.Class) {
		return false
	}
	for name, wanted := range r.Qualifiers {
		i := slices.IndexFunc(p.Qualifiers, func(v serving.Value) bool { return v.Name == name })
		if i < 0 || !sameValue(newQualifier(p.Qualifiers[i]).Value, wanted) {
			return false
		}
	}
	return true
}

// isClass says whether an output is a class, by its name or number.
func isClass(output []byte, class string) bool {
	output = bytes.TrimSpace(output)
	if len(output) == 0 || output[0] == '{' || output[0] == '[' {
		return false
	}
	if output[0] != '"' {
		return sameValue(string(output), class)
	}
	var text string
	return json.Unmarshal(output, &text) == nil && sameValue(text, class)
}

// sameValue compares texts, and numbers by their values: a model may write 5 as 5.0.
func sameValue(a, b string) bool {
	if a == b {
		return true
	}
	x, errX := strconv.ParseFloat(a, 64)
	y, errY := strconv.ParseFloat(b, 64)
	return errX == nil && errY == nil && x == y
}
