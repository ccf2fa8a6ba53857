package catalog

import (
	"cmp"
	"slices"

	"github.com/topsail-serving/topsail/serving"
)

// difference is one object that differs between two catalogs. Objects are
// *serving.App, *serving.Version, *serving.Key, *serving.Stream or modelDocument, and nil
// where the object is not there.
type difference struct {
	kind, key     string
	before, after any
}

// differences are sorted by kind and key. An object is the same where its pointer is:
// so it takes a look at each app, model, key and stream, and no more.
func differences(from, to *serving.Catalog) []difference {
	found := compare(Apps, from.Apps, to.Apps)
	found = append(found, compare(Keys, from.Keys, to.Keys)...)
	found = append(found, compare(Streams, from.Streams, to.Streams)...)
	for name, m := range to.Models {
		if old := from.Models[name]; old != m {
			found = append(found, compareModels(name, old, m)...)
		}
	}
	for name, old := range from.Models {
		if to.Models[name] == nil {
			found = append(found, compareModels(name, old, nil)...)
		}
	}
	slices.SortFunc(found, func(a, b difference) int { return cmp.Or(cmp.Compare(a.kind, b.kind), cmp.Compare(a.key, b.key)) })
	return found
}

// compareModels takes nil for a model that is not there.
func compareModels(name string, from, to *serving.Model) []difference {
	docsBefore, versionsBefore := partsOf(from)
	docsAfter, versionsAfter := partsOf(to)
	found := compare(Versions, versionsBefore, versionsAfter)
	for i := range found {
		found[i].key = serving.ModelID{Model: name, Version: found[i].key}.String()
	}
	return append(found, compare(Models, docsBefore, docsAfter)...)
}

// partsOf is a model as its documents divide it.
func partsOf(m *serving.Model) (map[string]modelDocument, map[string]*serving.Version) {
	if m == nil {
		return nil, nil
	}
	return map[string]modelDocument{m.Name: {m.Name, m.Current, m.Serving, m.Previous, m.FileSays}}, m.Versions
}

func compare[T comparable](kind string, from, to map[string]T) (found []difference) {
	for key, after := range to {
		before, was := from[key]
		switch {
		case !was:
			found = append(found, difference{kind: kind, key: key, after: after})
		case before != after:
			found = append(found, difference{kind, key, before, after})
		}
	}
	for key, before := range from {
		if _, is := to[key]; !is {
			found = append(found, difference{kind: kind, key: key, before: before})
		}
	}
	return found
}
