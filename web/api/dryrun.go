package api

import (
	"strings"

	"github.com/topsail-serving/topsail/serving"
	"github.com/topsail-serving/topsail/serving/catalog"
)

// DryRun is what a change would do.
type DryRun struct {
	DryRun  bool           `json:"dry_run"`
	Changes []ObjectChange `json:"changes"`
	Effects []string       `json:"effects"` // in sentences
}

// ObjectChange is the change of one object.
type ObjectChange struct {
	Action string `json:"action"` // "create", "update" or "delete"
	Kind   string `json:"kind"`   // "app", "model", "version", "stream" or "key"
	Name   string `json:"name"`
	Before any    `json:"before,omitempty"`
	After  any    `json:"after,omitempty"`
}

// differences lists what is other in one catalog than in the one before.
func differences(before, after view) ([]ObjectChange, error) {
	documents, err := catalog.Diff(before.cat, after.cat)
	if err != nil {
		return nil, err
	}
	changes := []ObjectChange{}
	for _, d := range documents {
		kind, was := before.object(d)
		_, is := after.object(d)
		c := ObjectChange{Action: "update", Kind: kind, Name: d.Key, Before: was, After: is}
		switch {
		case was == nil:
			c.Action = "create"
		case is == nil:
			c.Action = "delete"
		}
		changes = append(changes, c)
	}
	return changes, nil
}

// object is what a document of the catalog holds, as the caller sees it; nil where it
// is not there.
func (v view) object(d catalog.Document) (kind string, shown any) {
	switch d.Kind {
	case catalog.Apps:
		if app := v.cat.Apps[d.Key]; app != nil {
			shown = v.app(app)
		}
		return "app", shown
	case catalog.Models:
		if m := v.cat.Models[d.Key]; m != nil {
			shown = v.model(m)
		}
		return "model", shown
	case catalog.Versions:
		model, version, _ := strings.Cut(d.Key, ":")
		if registered := v.cat.Version(serving.ModelID{Model: model, Version: version}); registered != nil {
			shown = v.version(registered)
		}
		return "version", shown
	case catalog.Streams:
		if s := v.cat.Streams[d.Key]; s != nil {
			shown = describeStream(s, nil)
		}
		return "stream", shown
	}
	if k := v.cat.Keys[d.Key]; k != nil {
		shown = describeKey(k)
	}
	return "key", shown
}
