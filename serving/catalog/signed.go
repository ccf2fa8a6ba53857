package catalog

import "topsail/serving"

// Signed is a change with who makes it, for the audit log. A store that applies it
// keeps an entry for every object that it changes, as durably as the change itself, and
// versions that it makes say that they are deployed by them.
type Signed struct {
	Change
	By serving.Author
}

func (s Signed) apply(d *draft) error {
	d.by = s.By
	return s.Change.apply(d)
}

// Author is who signed a change; the zero Author where nobody did.
func Author(c Change) serving.Author {
	if s, ok := c.(Signed); ok {
		return s.By
	}
	return serving.Author{}
}
