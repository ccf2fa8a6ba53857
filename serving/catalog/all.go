package catalog

import "github.com/topsail-serving/topsail/serving"

// All are changes that are made together, as one revision, or not at all. An Import is made
// alone.
type All []Change

func (a All) apply(d *draft) error {
	for _, c := range a {
		if err := c.apply(d); err != nil {
			return err
		}
	}
	return nil
}

// Outcome is what Apply made of a catalog before, to be made of the same one again: with the
// same generations and times.
type Outcome struct{ After *serving.Catalog }

func (o Outcome) apply(d *draft) error {
	d.Catalog, d.changed = *o.After, true
	d.Revision = d.base.Revision
	return nil
}
