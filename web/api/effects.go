package api

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"time"

	"github.com/topsail-serving/topsail/serving"
)

// effects says what it means to go from one catalog to another.
type effects struct {
	before, after *serving.Catalog
	scope         scope
	replicas      map[serving.ModelID]int // that there are
	ready         map[serving.ModelID]int // that serve
	sentences     []string
}

// effects are the sentences about a change, for a caller.
func (a *api) effects(before view, after *serving.Catalog) []string {
	e := &effects{before: before.cat, after: after, scope: before.scope,
		replicas: map[serving.ModelID]int{}, ready: map[serving.ModelID]int{}, sentences: []string{}}
	for _, r := range a.Replicas.Replicas() {
		id := serving.ModelID{Model: r.Model, Version: r.Version}
		if r.State != "stopped" {
			e.replicas[id]++
		}
		if r.State == "ready" {
			e.ready[id]++
		}
	}
	e.apps()
	e.models()
	e.keys()
	e.streams()
	switch {
	case len(e.sentences) > 0:
	case after.Revision == before.cat.Revision:
		e.say("Nothing changes.")
	default: // such as a weight of 1 that is written down
		e.say("It is stored in another form, with the same meaning.")
	}
	return e.sentences
}

func (e *effects) say(format string, args ...any) {
	e.sentences = append(e.sentences, fmt.Sprintf(format, args...))
}

func (e *effects) apps() {
	for _, name := range union(e.before.Apps, e.after.Apps) {
		before, after := e.before.Apps[name], e.after.Apps[name]
		switch {
		case !e.scope.seesApp(name):
		case after == nil:
			e.say("App %q is deleted: queries to it are refused.", name)
		default:
			if before == nil {
				e.say("App %q accepts queries from now on.", name)
				e.asked(&serving.App{}, after)
				continue
			}
			e.asked(before, after)
			e.terms(before, after)
		}
	}
}

// asked says which models and versions an app asks that it did not.
func (e *effects) asked(before, after *serving.App) {
	for _, model := range before.Asked() {
		if !slices.Contains(after.Asked(), model) {
			e.say("App %q no longer calls model %q.", after.Name, model)
		}
	}
	for _, model := range after.Asked() {
		was, is := current(e.before, model), current(e.after, model)
		switch {
		case is == "":
			e.say("App %q calls model %q, which has no current version.", after.Name, model)
		case !slices.Contains(before.Asked(), model):
			e.say("App %q calls version %q of model %q from now on.", after.Name, is, model)
		case was != is && was != "":
			e.say("App %q calls version %q of model %q from now on; it called version %q.", after.Name, is, model, was)
		case was != is:
			e.say("App %q calls version %q of model %q from now on.", after.Name, is, model)
		}
	}
	if before.Name != "" && !reflect.DeepEqual(before.Stages, after.Stages) {
		e.say("App %q calls its models in other stages from now on.", after.Name)
	}
	if len(after.Asked()) == 0 && (len(before.Models) > 0 || before.Name == "") {
		e.say("App %q links no model: every query gets its default.", after.Name)
	}
}

func current(cat *serving.Catalog, model string) string {
	if m := cat.Models[model]; m != nil {
		return m.Current
	}
	return ""
}

func (e *effects) models() {
	for _, name := range union(e.before.Models, e.after.Models) {
		before, after := e.before.Models[name], e.after.Models[name]
		if before == after {
			continue
		}
		if before == nil {
			before = &serving.Model{Name: name}
		}
		if after == nil {
			e.say("Model %q is deleted.", name)
			after = &serving.Model{Name: name}
		}
		for _, version := range union(before.Versions, after.Versions) {
			e.version(serving.ModelID{Model: name, Version: version}, before.Versions[version], after.Versions[version])
		}
		if before.Current != after.Current {
			e.changeOver(after)
		}
	}
}

// changeOver says which version answers while another becomes the current one.
func (e *effects) changeOver(m *serving.Model) {
	id := serving.ModelID{Model: m.Name, Version: m.Current}
	switch n := e.ready[id]; {
	case m.Current == "":
		if len(m.Versions) > 0 {
			e.say("Model %q no longer has a current version.", m.Name)
		}
	case n > 0:
		e.say("Version %q of model %q has %s, and gets the queries at once.", id.Version, id.Model, count(n, "ready replica"))
	case m.Serving != "" && m.Serving != m.Current:
		e.say("Version %q of model %q has no ready replica: version %q answers until it has one.", id.Version, id.Model, m.Serving)
	default:
		e.say("Version %q of model %q has no ready replica: queries get the default until it has one.", id.Version, id.Model)
	}
}

func (e *effects) version(id serving.ModelID, before, after *serving.Version) {
	switch {
	case before == after:
	case after == nil:
		e.say("Version %q of model %q is deleted, with %s.", id.Version, id.Model, count(e.replicas[id], "replica"))
	case before == nil:
		e.say("Version %q of model %q is registered, with %s.", id.Version, id.Model, amount(after))
	default:
		if was, is := amount(before), amount(after); was != is {
			e.say("Version %q of model %q gets %s; it had %s. %s ready.", id.Version, id.Model, is, was, isAre(e.ready[id]))
		} else if !reflect.DeepEqual(before.Scale, after.Scale) || before.Replicas != after.Replicas {
			e.say("Version %q of model %q has other scaling settings from now on.", id.Version, id.Model)
		}
		e.pin(id, before.Pin, after.Pin)
		e.definition(before, after)
	}
}

// definition describes changes of the version's other settings.
func (e *effects) definition(before, after *serving.Version) {
	was := *before
	if was.Description != after.Description {
		e.say("Version %q of model %q has another description from now on.", after.Version, after.Model)
		was.Description = after.Description
	}
	was.Replicas, was.Scale, was.Pin, was.Origin, was.Prepared = after.Replicas, after.Scale, after.Pin, after.Origin, after.Prepared
	switch {
	case before.Prepared && !after.Prepared:
		e.say("Version %q of model %q, which was prepared, is registered.", after.Version, after.Model)
	case !reflect.DeepEqual(&was, after):
		e.say("Version %q of model %q has another definition from now on.", after.Version, after.Model)
	}
}

func (e *effects) pin(id serving.ModelID, before, after *serving.Pin) {
	switch {
	case after == nil && before != nil:
		e.say("The number of replicas of version %q of model %q is no longer pinned.", id.Version, id.Model)
	case after == nil || before != nil && *before == *after:
	case after.Count == serving.Paused:
		e.say("Version %q of model %q keeps its %s, %s.", id.Version, id.Model, count(e.replicas[id], "replica"), until(after.Until))
	default:
		e.say("Version %q of model %q gets %s, %s, whatever the demand.", id.Version, id.Model, count(after.Count, "replica"), until(after.Until))
	}
}

func (e *effects) keys() {
	for _, id := range union(e.before.Keys, e.after.Keys) {
		before, after := e.before.Keys[id], e.after.Keys[id]
		switch {
		case before == nil:
			e.say("The key %q is valid, with the role %s.", after.Name, after.Role)
		case after == nil:
			e.say("Requests with the key %q are refused within a second, and its sessions end.", before.Name)
		}
	}
}

func (e *effects) streams() {
	for _, name := range union(e.before.Streams, e.after.Streams) {
		before, after := e.before.Streams[name], e.after.Streams[name]
		switch {
		case after == nil:
			e.say("Stream %q is forgotten, unless a process serves it, which announces it again.", name)
		case before == nil:
		case !maps.Equal(before.Apps, after.Apps):
			e.mapped(name, before.Apps, after.Apps)
		case (before.Suspension == nil) == (after.Suspension == nil):
		case after.Suspension != nil:
			e.say("Stream %q reads no more records: they wait in the broker.", name)
		default:
			e.say("Stream %q continues from where it stopped.", name)
		}
	}
}

// mapped says which records of a stream other apps predict.
func (e *effects) mapped(stream string, before, after map[string]string) {
	for _, named := range union(before, after) {
		switch is := after[named]; {
		case is == before[named]:
		case is == "":
			e.say("Records of stream %q that name %q are predicted by the app of its configuration, if that has one.", stream, named)
		default:
			e.say("Records of stream %q that name %q are predicted by app %q.", stream, named, is)
		}
	}
}

// amount is how many replicas a version is to have.
func amount(v *serving.Version) string {
	if s := v.Scale; s != nil {
		return fmt.Sprintf("%d to %s by demand", s.Min, count(s.Max, "replica"))
	}
	return count(v.Replicas, "replica")
}

func count(n int, thing string) string {
	if n != 1 {
		thing += "s"
	}
	return fmt.Sprintf("%d %s", n, thing)
}

func isAre(n int) string {
	if n == 1 {
		return "1 is"
	}
	return fmt.Sprintf("%d are", n)
}

func until(t time.Time) string {
	if t.IsZero() {
		return "until the pin is released"
	}
	return "until " + t.UTC().Format(time.RFC3339)
}

// union is the names of two maps, sorted.
func union[V any](a, b map[string]V) []string {
	names := maps.Clone(a)
	if names == nil {
		names = map[string]V{}
	}
	maps.Copy(names, b)
	return slices.Sorted(maps.Keys(names))
}
