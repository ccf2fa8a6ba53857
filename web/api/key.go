package api

import (
	"time"

	"github.com/topsail-serving/topsail/serving"
)

// NewKey is a key to be made.
type NewKey struct {
	Name    string         `json:"name" required:"yes"`
	Role    serving.Role   `json:"role" required:"yes"`
	Apps    []string       `json:"apps,omitempty"`
	Expires time.Time      `json:"expires,omitzero"`
	Limit   *serving.Limit `json:"limit,omitempty"`

	Priority int `json:"priority,omitempty"`
}

// Key is a key as the API shows it, without its hash.
type Key struct {
	serving.Key
	Hash *struct{} `json:"hash,omitempty"` // in the place of the key's
}

// KeyWithSecret is a key as it is shown once.
type KeyWithSecret struct {
	Key
	Secret string `json:"secret"`
}

func describeKey(k *serving.Key) Key { return Key{Key: *k} }
