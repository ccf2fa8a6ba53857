package catalog

import (
	"reflect"

	"github.com/topsail-serving/topsail/serving"
)

// Restore makes a catalog what it was at another time or place, keys and generations
// included. Objects that are equal stay as they are. The revision goes on from the later of
// the two.
type Restore struct{ To *serving.Catalog }

func (c Restore) apply(d *draft) error {
	d.Apps, d.Keys, d.Streams = restored(d.base.Apps, c.To.Apps), restored(d.base.Keys, c.To.Keys), restored(d.base.Streams, c.To.Streams)
	d.Models = make(map[string]*serving.Model, len(c.To.Models))
	for name, to := range c.To.Models {
		m := *to
		if old := d.base.Models[name]; old != nil {
			m.Versions = restored(old.Versions, to.Versions)
		}
		d.Models[name] = &m
	}
	d.Models = restored(d.base.Models, d.Models)
	if d.changed = len(differences(d.base, &d.Catalog)) > 0; d.changed {
		d.Revision = max(d.base.Revision, c.To.Revision)
	}
	return nil
}

// restored is to, with what is equal in from as it is there.
func restored[T any](from, to map[string]*T) map[string]*T {
	all := make(map[string]*T, len(to))
	for name, object := range to {
		all[name] = object
		if old := from[name]; old != nil && reflect.DeepEqual(old, object) {
			all[name] = old
		}
	}
	return all
}
