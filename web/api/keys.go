package api

import (
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/topsail-serving/topsail/serving"
	"github.com/topsail-serving/topsail/serving/catalog"
	"github.com/topsail-serving/topsail/web/rest"
)

func (a *api) listKeys(w http.ResponseWriter, r *http.Request) error {
	keys := slices.SortedFunc(maps.Values(a.Store.Catalog().Keys), func(x, y *serving.Key) int { return strings.Compare(x.Name, y.Name) })
	list, err := rest.PageOf(r, keys, func(k *serving.Key) string { return k.Name }, describeKey)
	if err != nil {
		return err
	}
	return rest.Respond(w, http.StatusOK, list)
}

func (a *api) getKey(w http.ResponseWriter, r *http.Request) error {
	k := a.Store.Catalog().Keys[r.PathValue("key")]
	if k == nil {
		return fmt.Errorf("a key with the id %q %w", r.PathValue("key"), catalog.ErrNotFound)
	}
	return rest.Respond(w, http.StatusOK, describeKey(k))
}

// createKey shows the secret of the new key, here and never again.
func (a *api) createKey(w http.ResponseWriter, r *http.Request) error {
	var body NewKey
	if err := rest.ReadJSON(w, r, rest.MaxBody, &body); err != nil {
		return err
	}
	now := a.Now().UTC()
	if !body.Expires.IsZero() && !body.Expires.After(now) {
		return rest.Invalid("expires is in the past, and the key would never be valid")
	}
	key, secret := serving.NewKey()
	key.Name, key.Role, key.Apps, key.Created, key.Expires, key.Limit, key.Priority = body.Name, body.Role, body.Apps, now, body.Expires, body.Limit, body.Priority
	return a.edit(w, r, func(view) ([]catalog.Change, error) {
		return []catalog.Change{catalog.AddKey{Key: *key}}, nil
	}, func(_, after view) error {
		w.Header().Set("Location", root+"/keys/"+url.PathEscape(key.ID))
		return rest.Respond(w, http.StatusCreated, KeyWithSecret{describeKey(after.cat.Keys[key.ID]), secret})
	})
}

func (a *api) revokeKey(w http.ResponseWriter, r *http.Request) error {
	id := r.PathValue("key")
	return a.edit(w, r, func(v view) ([]catalog.Change, error) {
		return []catalog.Change{catalog.RevokeKey{ID: id}}, a.othersAdminister(v.cat, id)
	}, func(_, _ view) error {
		w.WriteHeader(http.StatusNoContent)
		return nil
	})
}

// othersAdminister refuses to revoke the last key with the role admin.
func (a *api) othersAdminister(cat *serving.Catalog, id string) error {
	key := cat.Keys[id]
	if key == nil || !a.administers(key) || !a.guard.Required() || a.guard.Keys != nil {
		return nil
	}
	for _, other := range cat.Keys {
		if other != key && a.administers(other) {
			return nil
		}
	}
	return fmt.Errorf("%w: the key %q is the last one with the role admin, and no one could administer Topsail without it; create another one first, or set web.keys_file",
		ErrRefused, key.Name)
}

func (a *api) administers(k *serving.Key) bool {
	return k.Role == serving.RoleAdmin && !k.Expired(a.Now())
}

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
