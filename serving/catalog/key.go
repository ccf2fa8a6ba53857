package catalog

import (
	"fmt"

	"github.com/topsail-serving/topsail/serving"
)

// AddKey adds a key.
type AddKey struct{ Key serving.Key }

func (c AddKey) apply(d *draft) error {
	if err := c.Key.Check(); err != nil {
		return invalid(err)
	}
	if d.Keys[c.Key.ID] != nil {
		return fmt.Errorf("key %q %w", c.Key.ID, ErrExists)
	}
	for _, k := range d.Keys {
		if k.Name == c.Key.Name {
			return fmt.Errorf("a key named %q %w; revoke it, or use another name", c.Key.Name, ErrExists)
		}
	}
	if len(d.Keys) >= serving.MaxKeys {
		return invalid(fmt.Errorf("there are %d keys, and no more are allowed; revoke some", len(d.Keys)))
	}
	own, err := roundTrip(c.Key)
	if err != nil {
		return err
	}
	d.Keys[own.ID] = own
	d.changed = true
	return nil
}

// RevokeKey removes a key.
type RevokeKey struct{ ID string }

func (c RevokeKey) apply(d *draft) error {
	if d.Keys[c.ID] == nil {
		return fmt.Errorf("key %q %w", c.ID, ErrNotFound)
	}
	delete(d.Keys, c.ID)
	d.changed = true
	return nil
}
