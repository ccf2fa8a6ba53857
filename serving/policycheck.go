package serving

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
)

// Bounds of options. They keep typing errors out, and are far from what makes sense.
const (
	maxFeatures    = 64
	maxRampSeconds = 30 * 24 * 3600
	maxQualifier   = 128 // bytes
	maxOption      = 1e6
	maxMapped      = 1e9 // of a cost or a weight
)

// policyCheck collects what is wrong with one policy of an app.
type policyCheck struct {
	app   *App
	spec  *PolicySpec
	about string // what each error begins with
	errs  []error
}

func (c *policyCheck) wrong(format string, args ...any) {
	c.errs = append(c.errs, fmt.Errorf(c.about+format, args...))
}

// checkPolicy says everything that is wrong with the app's policy. Whatever an input,
// an output or a model could make impossible is refused here, and not when it is
// queried.
func (a *App) checkPolicy() []error {
	c := policyCheck{app: a, spec: &a.Policy, about: "policy: "}
	c.check()
	if a.Policy.Fallback != nil {
		c.spec, c.about = a.Policy.Fallback, "policy: fallback: "
		c.checkFallback()
		c.check()
	}
	return c.errs
}

func (c *policyCheck) check() {
	if _, known := policyKinds[c.spec.KindName()]; !known {
		c.wrong("kind %q is unknown: use one of %s", c.spec.Kind, strings.Join(PolicyKinds(), ", "))
		return
	}
	c.checkOptions()
	c.checkTypes()
	c.checkLoss()
	c.checkNames()
	c.checkNumbers()
	c.checkMaps()
	c.checkConfidence()
	if !slices.Contains([]string{"", ScopeApp, ScopeUser, ScopeContext, ScopeUserContext}, c.spec.Scope) {
		c.wrong("scope %q is unknown: use %q, %q, %q or %q", c.spec.Scope, ScopeApp, ScopeUser, ScopeContext, ScopeUserContext)
	}
	switch c.spec.Kind {
	case PolicyVersions:
		c.checkVersions()
	case PolicyCustom:
		c.checkCustom()
	}
}

// checkFallback checks what is asked of a policy because it is a fallback: it has no
// state of its own, and what is the app's is said once.
func (c *policyCheck) checkFallback() {
	if policyKinds[c.spec.KindName()].learns {
		c.wrong("kind %q learns, and a fallback does not: use one of %s", c.spec.Kind, strings.Join(fallbackKinds(), ", "))
	}
	for option := range c.spec.options() {
		if option != "kind" && slices.Contains(everyPolicy, option) {
			c.wrong("%s belongs to the policy, not to its fallback", option)
		}
	}
}

func (c *policyCheck) checkOptions() {
	kind := policyKinds[c.spec.KindName()]
	for option := range c.spec.options() {
		if !slices.Contains(everyPolicy, option) && !slices.Contains(kind.options, option) {
			c.wrong("%q has no option %s: it has %s", c.spec.KindName(), option, strings.Join(kind.options, ", "))
		}
	}
}

func (c *policyCheck) checkTypes() {
	if in := c.app.InputType; in != 0 && !AcceptsInput(c.spec.KindName(), in) {
		c.wrong("kind %q takes ints, floats or doubles, and the app takes %v", c.spec.Kind, in)
	}
	if takes, out := policyKinds[c.spec.KindName()].outputs, c.app.OutputType; takes != nil && out != OutputAny && !slices.Contains(takes, out) {
		c.wrong("kind %q takes outputs that are %s, and the app's output_type is %q", c.spec.Kind, joinOutputs(takes), out)
		return
	}
	c.checkOutputs("the signature", c.app.Signature.OutputTensors())
}

// checkOutputs refuses a policy that cannot calculate with the outputs of a signature.
func (c *policyCheck) checkOutputs(of string, outputs []Tensor) {
	takes := policyKinds[c.spec.KindName()].outputs
	if takes == nil || len(outputs) == 0 {
		return
	}
	reads, is := c.spec.OutputOf(c.app.Outputs()), outputs[0].outputType()
	switch {
	case len(outputs) > 1:
		c.wrong("kind %q calculates with one output, and %s has %d", c.spec.Kind, of, len(outputs))
	case !slices.Contains(takes, is):
		c.wrong("kind %q takes outputs that are %s, and in %s %q is %s", c.spec.Kind, joinOutputs(takes), of, outputs[0].Name, outputs[0])
	case reads != is && !(reads == OutputLabel && is == OutputNumber): // a number may stand for a class
		c.wrong("kind %q reads outputs as %s, and in %s %q is %s: set output_type to %q", c.spec.Kind, reads, of, outputs[0].Name, outputs[0], is)
	}
}

// CheckOutputs refuses a policy that cannot calculate with the outputs of a version that the app links.
func (a *App) CheckOutputs(v *Version) error {
	c := policyCheck{app: a, spec: &a.Policy, about: "policy: "}
	of := "model " + strconv.Quote(v.Model)
	c.checkOutputs(of, v.Signature.OutputTensors())
	if a.Policy.Fallback != nil {
		c.spec, c.about = a.Policy.Fallback, "policy: fallback: "
		c.checkOutputs(of, v.Signature.OutputTensors())
	}
	return errors.Join(c.errs...)
}

func (c *policyCheck) checkLoss() {
	switch p := c.spec; p.Loss {
	case "", LossZeroOne:
		if p.Scale != 0 {
			c.wrong("scale is for the losses %q and %q", LossAbsolute, LossSquared)
		}
	case LossAbsolute, LossSquared:
		if out := p.OutputOf(c.app.Outputs()); out == OutputLabel || out == OutputJSON {
			c.wrong("loss %q compares numbers, and outputs are taken for %s: set output_type to %q or %q", p.Loss, out, OutputNumber, OutputVector)
		}
	default:
		c.wrong("loss %q is unknown: use %q, %q or %q", p.Loss, LossZeroOne, LossAbsolute, LossSquared)
	}
}

// checkNames holds names to their form. An app asks one version of each model, so
// that no option can name two of the same.
func (c *policyCheck) checkNames() {
	seen := map[[2]string]bool{} // option and model
	for option, name := range c.spec.named() {
		model, version, pinned := strings.Cut(name, ":")
		switch at := [2]string{option, model}; {
		case CheckModelName(model) != nil:
			c.wrong("%s: %q is not the name of a model", option, name)
		case pinned && CheckVersion(version) != nil:
			c.wrong("%s: %q is not a version of a model: use model:version", option, name)
		case pinned && option == "costs":
			c.wrong("costs: %q names a version, and costs are of models: use %q", name, model)
		case seen[at]:
			c.wrong("%s names model %q twice", option, model)
		default:
			seen[at] = true
		}
	}
}

// checkNumbers refuses numbers that no kind has a meaning for.
func (c *policyCheck) checkNumbers() {
	p := c.spec
	for _, one := range []struct {
		option  string
		x, most float64
	}{
		{"share", p.Share, 1},
		{"epsilon", p.Epsilon, 1},
		{"gamma", p.Gamma, 1},
		{"mixing", p.Mixing, 1},
		{"discount", p.Discount, 1},
		{"agreement", p.Agreement, 1},
		{"max_failures", p.MaxFailures, 1},
		{"max_loss", p.MaxLoss, 1},
		{"eta", p.Eta, maxOption},
		{"alpha", p.Alpha, maxOption},
		{"scale", p.Scale, maxOption},
		{"most", float64(p.Most), maxOption},
		{"min_answers", float64(p.MinAnswers), maxOption},
		{"features", float64(p.Features), maxFeatures},
		{"ramp_seconds", float64(p.RampSeconds), maxRampSeconds},
		{"within_micros", float64(p.WithinMicros), float64(MaxSLO.Microseconds())},
		{"record_seconds", float64(p.RecordSeconds), maxRecord.Seconds()},
	} {
		if !(one.x >= 0 && one.x <= one.most) { // NaN is neither
			c.wrong("%s must be between 0 and %s", one.option, strconv.FormatFloat(one.most, 'f', -1, 64))
		}
	}
}

func (c *policyCheck) checkMaps() {
	for _, name := range slices.Sorted(maps.Keys(c.spec.Costs)) {
		if x := c.spec.Costs[name]; !(x > 0 && x <= maxMapped) {
			c.wrong("costs of %q must be above 0 and at most %v", name, maxMapped)
		}
	}
	total := 0.0
	for _, name := range slices.Sorted(maps.Keys(c.spec.Weights)) {
		x := c.spec.Weights[name]
		if !(x >= 0 && x <= maxMapped) {
			c.wrong("weights of %q must be between 0 and %v", name, maxMapped)
		}
		total += x
	}
	if len(c.spec.Weights) > 0 && total == 0 {
		c.wrong("weights must not all be 0")
	}
}

func (c *policyCheck) checkConfidence() {
	if len(c.spec.Qualifier) > maxQualifier {
		c.wrong("qualifier must be at most %d bytes long", maxQualifier)
	}
	switch x := c.spec.Confidence; {
	case math.IsNaN(x) || math.IsInf(x, 0):
		c.wrong("confidence must be a number")
	case c.spec.Qualifier == "" && (x < 0 || x > 1):
		c.wrong("confidence must be between 0 and 1, unless it is for a qualifier")
	}
}

func (c *policyCheck) checkVersions() {
	p := c.spec
	switch {
	case p.Canary == "" && len(p.Weights) == 0:
		c.wrong("\"versions\" needs weights, or a canary with its share")
	case p.Canary != "" && len(p.Weights) > 0:
		c.wrong("\"versions\" takes weights or a canary, not both")
	case p.Canary == "" && (p.Share != 0 || p.RampSeconds != 0):
		c.wrong("share and ramp_seconds need a canary")
	}
	if n := len(c.app.Models); n > 1 {
		c.wrong("\"versions\" is for apps that link one model, and this one links %d", n)
	}
	for _, version := range slices.Sorted(maps.Keys(p.Weights)) {
		if CheckVersion(version) != nil {
			c.wrong("weights: %q is not a version", version)
		}
	}
	if p.Canary != "" && CheckVersion(p.Canary) != nil {
		c.wrong("canary %q is not a version", p.Canary)
	}
}

func (c *policyCheck) checkCustom() {
	model, _, pinned := strings.Cut(c.spec.Model, ":")
	switch {
	case model == "":
		c.wrong("\"custom\" needs model, the model that decides; it takes strings")
	case pinned:
		c.wrong("model %q names a version, and the current one decides: use %q", c.spec.Model, model)
	case slices.Contains(c.app.Models, model):
		c.wrong("model %q decides, and cannot be linked to the app as well", model)
	}
}

func joinOutputs(list []OutputType) string {
	var names []string
	for _, t := range list {
		names = append(names, string(t))
	}
	return strings.Join(names, ", ")
}
