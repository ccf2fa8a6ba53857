package api

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/topsail-serving/topsail/serving"
)

// effects says what a change means where the difference of the objects does not show it:
// for the apps that ask a model, for the replicas that run, and for who holds a key.
type effects struct {
	before, after *serving.Catalog
	scope         scope
	replicas      map[serving.ModelID]int // that there are
	ready         map[serving.ModelID]int // that serve
	sentences     []string
}

// effects are the sentences about a change, for a caller; never nil.
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
	for id, key := range before.cat.Keys {
		if after.Keys[id] == nil {
			e.say("Requests with the key %q are refused within a second, and its sessions end.", key.Name)
		}
	}
	for name := range before.cat.Streams {
		if after.Streams[name] == nil {
			e.say("Stream %q is forgotten, unless a process serves it, which announces it again.", name)
		}
	}
	if len(e.sentences) == 0 && after.Revision == before.cat.Revision {
		e.say("Nothing changes.")
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
			e.asked(before, after)
		}
	}
}

// asked says which versions an app asks that it did not.
func (e *effects) asked(before, after *serving.App) {
	for _, model := range after.Asked() {
		was, is := current(e.before, model), current(e.after, model)
		switch {
		case is == "":
			e.say("App %q calls model %q, which has no current version.", after.Name, model)
		case was != is && was != "":
			e.say("App %q calls version %q of model %q from now on; it called version %q.", after.Name, is, model, was)
		case was != is || before == nil || !slices.Contains(before.Asked(), model):
			e.say("App %q calls version %q of model %q from now on.", after.Name, is, model)
		}
	}
	if len(after.Asked()) == 0 && len(after.Stages) == 0 && (before == nil || len(before.Asked()) > 0) {
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
		for _, version := range union(versionsOf(before), versionsOf(after)) {
			e.version(serving.ModelID{Model: name, Version: version}, versionsOf(before)[version], versionsOf(after)[version])
		}
		if after != nil && after.Current != "" && after.Current != current(e.before, name) {
			e.changeOver(after)
		}
	}
}

func versionsOf(m *serving.Model) map[string]*serving.Version {
	if m == nil {
		return nil
	}
	return m.Versions
}

// changeOver says which version answers while another becomes the current one.
func (e *effects) changeOver(m *serving.Model) {
	id := serving.ModelID{Model: m.Name, Version: m.Current}
	switch n := e.ready[id]; {
	case n > 0:
		e.say("Version %q of model %q has %s, and gets the queries at once.", id.Version, id.Model, count(n, "ready replica"))
	case m.Serving != "" && m.Serving != m.Current:
		e.say("Version %q of model %q has no ready replica: version %q answers until it has one.", id.Version, id.Model, m.Serving)
	default:
		e.say("Version %q of model %q has no ready replica: queries get the default until it has one.", id.Version, id.Model)
	}
}

// version says what becomes of a version's replicas.
func (e *effects) version(id serving.ModelID, before, after *serving.Version) {
	switch {
	case before == after || before == nil:
	case after == nil:
		e.say("Version %q of model %q is deleted, with %s.", id.Version, id.Model, count(e.replicas[id], "replica"))
	case after.Pin == nil || before.Pin != nil && *before.Pin == *after.Pin:
		if before.Replicas != after.Replicas {
			e.say("Version %q of model %q gets %s; %d ready now.", id.Version, id.Model, count(after.Replicas, "replica"), e.ready[id])
		}
	case after.Pin.Count == serving.Paused:
		e.say("Version %q of model %q keeps its %s, %s.", id.Version, id.Model, count(e.replicas[id], "replica"), until(after.Pin.Until))
	default:
		e.say("Version %q of model %q gets %s, %s, whatever the demand.", id.Version, id.Model, count(after.Pin.Count, "replica"), until(after.Pin.Until))
	}
}

func count(n int, thing string) string {
	if n != 1 {
		thing += "s"
	}
	return fmt.Sprintf("%d %s", n, thing)
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
