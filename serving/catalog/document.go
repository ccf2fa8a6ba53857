package catalog

import (
	"encoding/json"
	"fmt"
	"iter"

	"github.com/topsail-serving/topsail/serving"
)

// Kinds of documents: the names of the buckets or hashes that hold them.
const (
	Apps     = "apps"     // by name
	Versions = "versions" // by "model:version"
	Models   = "models"   // by name; what is not in the versions
	Keys     = "keys"     // by id
	Streams  = "streams"  // by name
)

// Document is the stored form of one object. Decode skips JSON fields that it
// does not know, so that an older release reads what a newer one wrote.
type Document struct {
	Kind string
	Key  string
	JSON []byte // nil: the document is deleted
}

// modelDocument is a model without its versions.
type modelDocument struct {
	Name     string `json:"name"`
	Current  string `json:"current"`
	Serving  string `json:"serving,omitempty"`
	Previous string `json:"previous,omitempty"`
	FileSays string `json:"file_says,omitempty"`
}

// Diff returns the documents to write and delete for a store that holds from to hold to, sorted by
// kind and key. It distinguishes objects by their pointers, so from should be what to was made of;
// from an empty catalog it is all of to.
func Diff(from, to *serving.Catalog) ([]Document, error) {
	var docs []Document
	for _, d := range differences(from, to) {
		doc := Document{Kind: d.kind, Key: d.key}
		if d.after != nil {
			var err error
			if doc.JSON, err = json.Marshal(d.after); err != nil {
				return nil, fmt.Errorf("encode %s/%s: %w", d.kind, d.key, err)
			}
		}
		docs = append(docs, doc)
	}
	return docs, nil
}

// Decode builds the catalog of a revision from all its documents, in any order.
// It skips kinds that it does not know, which a newer release has added, and fails
// on documents that do not belong together.
func Decode(revision uint64, docs iter.Seq[Document]) (*serving.Catalog, error) {
	cat := &serving.Catalog{Revision: revision, Apps: map[string]*serving.App{}, Models: map[string]*serving.Model{}, Keys: map[string]*serving.Key{}, Streams: map[string]*serving.Stream{}}
	models := map[string]modelDocument{}
	for doc := range docs {
		if err := decodeDocument(cat, models, doc); err != nil {
			return nil, fmt.Errorf("decode %s/%s: %w", doc.Kind, doc.Key, err)
		}
	}
	for name, doc := range models {
		if cat.Models[name] == nil {
			return nil, fmt.Errorf("model %q has no versions", name)
		}
		m := cat.Models[name]
		m.Current, m.Serving, m.Previous, m.FileSays = doc.Current, doc.Serving, doc.Previous, doc.FileSays
	}
	if len(models) != len(cat.Models) {
		return nil, fmt.Errorf("there are %d documents for %d models", len(models), len(cat.Models))
	}
	if err := cat.Check(); err != nil {
		return nil, err
	}
	return cat, nil
}

func decodeDocument(cat *serving.Catalog, models map[string]modelDocument, doc Document) error {
	switch doc.Kind {
	case Apps:
		app := &serving.App{}
		if err := json.Unmarshal(doc.JSON, app); err != nil {
			return err
		}
		if app.Models == nil {
			app.Models = []string{}
		}
		cat.Apps[app.Name] = app
		return doc.wantKey(app.Name)
	case Versions:
		v := &serving.Version{}
		if err := json.Unmarshal(doc.JSON, v); err != nil {
			return err
		}
		if cat.Models[v.Model] == nil {
			cat.Models[v.Model] = &serving.Model{Name: v.Model, Versions: map[string]*serving.Version{}}
		}
		cat.Models[v.Model].Versions[v.Version] = v
		return doc.wantKey(v.String())
	case Models:
		m := modelDocument{}
		if err := json.Unmarshal(doc.JSON, &m); err != nil {
			return err
		}
		models[m.Name] = m
		return doc.wantKey(m.Name)
	case Keys:
		k := &serving.Key{}
		if err := json.Unmarshal(doc.JSON, k); err != nil {
			return err
		}
		cat.Keys[k.ID] = k
		return doc.wantKey(k.ID)
	case Streams:
		s := &serving.Stream{}
		if err := json.Unmarshal(doc.JSON, s); err != nil {
			return err
		}
		cat.Streams[s.Name] = s
		return doc.wantKey(s.Name)
	}
	return nil
}

// wantKey holds what a document says it is about against where it was found.
func (doc Document) wantKey(about string) error {
	if about != doc.Key {
		return fmt.Errorf("it is about %q", about)
	}
	return nil
}
