package api

import (
	"context"
	"maps"
	"reflect"
	"slices"
	"time"

	"github.com/topsail-serving/topsail/serving"
)

// catalogEvent says how objects are now.
type catalogEvent struct {
	Revision uint64        `json:"revision"`
	Whole    bool          `json:"whole,omitempty"`
	Apps     []serving.App `json:"apps"`
	Models   []Model       `json:"models"`
	Versions []Version     `json:"versions"`
	Gone     []gone        `json:"gone"`
}

// gone is an object that is no longer there.
type gone struct {
	Kind string `json:"kind"`
	Name string `json:"name"`
}

func (v view) emptyEvent() *catalogEvent {
	return &catalogEvent{Revision: v.cat.Revision, Apps: []serving.App{}, Models: []Model{}, Versions: []Version{}, Gone: []gone{}}
}

// whole is everything that the caller sees.
func (v view) whole() *catalogEvent {
	e := v.emptyEvent()
	e.Whole = true
	for _, app := range v.apps() {
		e.Apps = append(e.Apps, v.app(app))
	}
	for _, m := range v.models() {
		e.Models = append(e.Models, v.model(m))
		for _, version := range versions(m) {
			e.Versions = append(e.Versions, v.version(version))
		}
	}
	return e
}

// since is what the caller sees now that is not as before.
func (v view) since(before view) *catalogEvent {
	e := v.emptyEvent()
	affected := v.modelsSince(before)
	for _, name := range union(before.cat.Apps, v.cat.Apps) {
		was, is := before.cat.Apps[name], v.cat.Apps[name]
		switch {
		case was == is || !v.scope.seesApp(name):
		case is == nil:
			e.Gone = append(e.Gone, gone{"app", name})
		case was == nil || !reflect.DeepEqual(before.app(was), v.app(is)):
			e.Apps = append(e.Apps, v.app(is))
		}
	}
	for _, name := range slices.Sorted(maps.Keys(affected)) {
		v.modelSince(before, name, e)
	}
	return e
}

// modelsSince are the models that may not be as before: they were changed themselves, or
// an app that asks them was.
func (v view) modelsSince(before view) map[string]bool {
	affected := map[string]bool{}
	for _, name := range union(before.cat.Models, v.cat.Models) {
		if before.cat.Models[name] != v.cat.Models[name] {
			affected[name] = true
		}
	}
	for _, name := range union(before.cat.Apps, v.cat.Apps) {
		was, is := before.cat.Apps[name], v.cat.Apps[name]
		if was == is {
			continue
		}
		for _, app := range []*serving.App{was, is} {
			if app == nil {
				continue
			}
			for _, model := range app.Asked() {
				affected[model] = true
			}
		}
	}
	return affected
}

// modelSince adds what is not as before of a model and its versions.
func (v view) modelSince(before view, name string, e *catalogEvent) {
	was, is := before.visible(name), v.visible(name)
	switch {
	case is == nil && was != nil:
		e.Gone = append(e.Gone, gone{"model", name})
	case is != nil && (was == nil || !reflect.DeepEqual(before.model(was), v.model(is))):
		e.Models = append(e.Models, v.model(is))
	}
	for _, id := range union(versionsOf(was), versionsOf(is)) {
		before, after := before.versionOf(was, id), v.versionOf(is, id)
		switch {
		case after == nil:
			e.Gone = append(e.Gone, gone{"version", serving.ModelID{Model: name, Version: id}.String()})
		case before == nil || !reflect.DeepEqual(before, after):
			e.Versions = append(e.Versions, *after)
		}
	}
}

// visible is a model that the caller sees, or nil.
func (v view) visible(name string) *serving.Model {
	if m := v.cat.Models[name]; m != nil && v.seesModel(name) {
		return m
	}
	return nil
}

func versionsOf(m *serving.Model) map[string]*serving.Version {
	if m == nil {
		return nil
	}
	return m.Versions
}

// versionOf describes a version of a model; nil where there is none.
func (v view) versionOf(m *serving.Model, id string) *Version {
	if m == nil || m.Versions[id] == nil {
		return nil
	}
	doc := v.version(m.Versions[id])
	return &doc
}

// watchCatalog sends changes to subscribers until ctx ends.
func (s *broadcast) watchCatalog(ctx context.Context) {
	for ctx.Err() == nil {
		_ = s.api.Store.Watch(ctx, s.takeCatalog) // the store reports its own errors
		select {
		case <-ctx.Done():
		case <-time.After(time.Second):
		}
	}
}

func (s *broadcast) takeCatalog(cat *serving.Catalog) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if cat == nil || cat == s.catalog {
		return
	}
	s.catalog = cat
	messages := map[*class][]byte{}
	for _, c := range s.classes {
		next := c.view.of(cat)
		messages[c] = event("catalog", next.since(c.view))
		c.view, c.whole = next, nil
	}
	for one := range s.subscribers {
		one.tell(messages[one.class])
	}
}
