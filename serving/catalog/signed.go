package catalog

import "github.com/topsail-serving/topsail/serving"

// Signed is a change with its author, for the audit log. A store that applies it keeps an entry
// for every object that it changes, as durably as the change itself, and versions that it makes
// say that they are deployed by them.
type Signed struct {
	Change
	By serving.Author
}

func (s Signed) apply(d *draft) error {
	d.by = s.By
	return s.Change.apply(d)
}

// Author is the author of a change; the zero Author where it is not signed.
func Author(c Change) serving.Author {
	if s, ok := c.(Signed); ok {
		return s.By
	}
	return serving.Author{}
}
