package api

import (
	"cmp"

	"github.com/topsail-serving/topsail/serving"
)

// Model is a model as the API shows it.
type Model struct {
	Name      string            `json:"name"`
	Current   string            `json:"current"`
	Serving   string            `json:"serving"`
	Previous  string            `json:"previous,omitempty"`
	InputType serving.InputType `json:"input_type,omitzero"`
	Versions  []string          `json:"versions"`
	Apps      []string          `json:"apps"`
}

// model describes a model.
func (v view) model(m *serving.Model) Model {
	doc := Model{Name: m.Name, Current: m.Current, Serving: m.Serving, Previous: m.Previous, Versions: []string{}, Apps: v.appsAsking(m.Name)}
	for _, version := range versions(m) {
		doc.Versions = append(doc.Versions, version.Version)
	}
	if shown := m.Versions[cmp.Or(m.Current, m.Serving, doc.Versions[len(doc.Versions)-1])]; shown != nil {
		doc.InputType = shown.InputType
	}
	return doc
}
