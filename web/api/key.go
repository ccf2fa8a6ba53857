package api

import (
	"time"

	"topsail/serving"
)

// NewKey is a key to be made.
type NewKey struct {
	Name    string         `json:"name" required:"yes"`
	Role    serving.Role   `json:"role" required:"yes"`
	Apps    []string       `json:"apps,omitempty"`
	Expires time.Time      `json:"expires,omitzero"`
	Limit   *serving.Limit `json:"limit,omitempty"`
}

// Key is a key as the API shows it, without its hash.
type Key struct {
	ID      string         `json:"id"`
	Name    string         `json:"name"`
	Role    serving.Role   `json:"role"`
	Apps    []string       `json:"apps,omitempty"`
	Created time.Time      `json:"created"`
	Expires time.Time      `json:"expires,omitzero"`
	Limit   *serving.Limit `json:"limit,omitempty"`
}

// KeyWithSecret is a key as it is shown once.
type KeyWithSecret struct {
	Key
	Secret string `json:"secret"`
}

func describeKey(k *serving.Key) Key {
	return Key{ID: k.ID, Name: k.Name, Role: k.Role, Apps: k.Apps, Created: k.Created, Expires: k.Expires, Limit: k.Limit}
}
