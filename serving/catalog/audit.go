package catalog

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/topsail-serving/topsail/serving"
)

// Audit says what a change did: an entry for each object that differs between the
// catalogs before and after it, as in Diff, by kind and name. An entry of a model is
// about what is not in its versions: which one is current, serves, or was current before.
// Entries have the objects as they are stored, but no secrets: versions are as Redact
// leaves them, and the hashes of keys are left out. So an entry that shows the same before
// and after may be about a secret. A store gives the IDs.
func Audit(by serving.Author, from, to *serving.Catalog, now time.Time) ([]serving.AuditEntry, error) {
	var entries []serving.AuditEntry
	for _, d := range differences(from, to) {
		before, err := show(d.before)
		if err != nil {
			return nil, fmt.Errorf("show %s/%s: %w", d.kind, d.key, err)
		}
		after, err := show(d.after)
		if err != nil {
			return nil, fmt.Errorf("show %s/%s: %w", d.kind, d.key, err)
		}
		entries = append(entries, serving.AuditEntry{
			At: now.UTC(), Who: by.Who, From: by.From, Client: by.Client,
			Action: d.action(), Kind: strings.TrimSuffix(d.kind, "s"), Name: d.key, // kinds of documents are plurals
			Before: before, After: after, Revision: to.Revision,
		})
	}
	return entries, nil
}

func (d difference) action() string {
	switch {
	case d.before == nil:
		return "create"
	case d.after == nil:
		return "delete"
	}
	return "update"
}

// show is the document of an object without its secrets; nil for none.
func show(object any) (json.RawMessage, error) {
	switch o := object.(type) {
	case nil:
		return nil, nil
	case *serving.Version:
		object = Redact(o)
	case *serving.Key:
		object = keyWithoutHash{Key: o}
	}
	return json.Marshal(object)
}

// keyWithoutHash has a field in front of the one of the key, and leaves it empty.
type keyWithoutHash struct {
	*serving.Key
	Hash []byte `json:"hash,omitempty"`
}
