package admission

import (
	"fmt"
	"time"

	"github.com/topsail-serving/topsail/internal/access"
	"github.com/topsail-serving/topsail/serving"
)

// Caller is the key that a request shows. The zero value shows none.
type Caller struct {
	name  string       // of the key
	key   *serving.Key // nil: it is one of the file, which may do everything here
	limit *bucket      // of the key; nil: none
}

// wrongKeyCause is the cause of an answer to a key that does not hold.
const wrongKeyCause = "the key is unknown, expired or deleted: send a valid one as Authorization: Bearer KEY or as X-Api-Key: KEY, or none if none is needed"

// Admit finds the caller that shows a key to ask an app, and refuses one that may not. Where every app
// needs a key, requests without one do not learn which apps exist. Its errors are Refusals and
// serving.ErrNoCatalog.
func (c *Control) Admit(shown []byte, app string, now time.Time) (Caller, error) {
	who, err := c.Asker(shown, app, now)
	if err != nil || who.key == nil {
		return who, err
	}
	if !who.key.For(app) {
		return who, c.Forbid(app, fmt.Sprintf("the key %q is not for this app: use another key, or add the app to this one", who.name))
	}
	return who, nil
}

// Asker finds the caller of a request about an app, or about all if it is empty, and refuses keys
// that are for no app at all.
func (c *Control) Asker(shown []byte, app string, now time.Time) (Caller, error) {
	who, err := c.Identify(shown, app, now)
	if err != nil || who.key == nil {
		return who, err
	}
	if !who.key.Role.Covers(serving.RoleQuery) {
		return who, c.Forbid(app, fmt.Sprintf("the key %q has the role %s, which may not query apps: use a key with the role query", who.name, who.key.Role))
	}
	return who, nil
}

// Identify finds the caller that shows a key. An invalid key is refused even where none is
// needed: a client that shows one expects that it counts.
func (c *Control) Identify(shown []byte, app string, now time.Time) (Caller, error) {
	r := c.rules.Load()
	if !r.checks {
		return Caller{}, nil
	}
	switch {
	case len(shown) == 0 && c.config.keysNeeded():
		return Caller{}, c.needKey(app)
	case len(shown) == 0:
		return Caller{}, nil
	}
	if key := r.catalog.Key(shown, now); key != nil {
		return Caller{key.Name, key, r.keys[key.ID]}, nil
	}
	if name, ok := c.config.Keys.Known(shown); ok {
		return Caller{name: name}, nil
	}
	if !c.Started() {
		return Caller{}, serving.ErrNoCatalog // the key may be in it
	}
	c.Count(app, WrongKey)
	return Caller{}, &Refusal{Reason: WrongKey, Cause: wrongKeyCause}
}

// May refuses a caller without a key to ask an app that needs one.
func (c *Control) May(who Caller, app *serving.App) error {
	if app.RequireKey && who == (Caller{}) {
		return c.needKey(app.Name)
	}
	return nil
}

// sees says whether a caller may know of an app and ask it.
func (who *Caller) sees(app *serving.App) bool {
	if *who == (Caller{}) {
		return !app.RequireKey
	}
	return who.key == nil || who.key.For(app.Name)
}

// Visible are the apps that a caller may know of, of those that find has: a gateway's own. It fails with
// serving.ErrNoCatalog.
func (c *Control) Visible(who Caller, find func(app string) (*serving.App, error)) ([]*serving.App, error) {
	if !c.Started() {
		return nil, serving.ErrNoCatalog
	}
	known := c.Catalog().Apps
	apps := make([]*serving.App, 0, len(known))
	for name := range known {
		if app, err := find(name); err == nil && who.sees(app) {
			apps = append(apps, app)
		}
	}
	return apps, nil
}

// Key is the caller's key of the catalog, or nil.
func (who *Caller) Key() *serving.Key { return who.key }

// Priority is the highest that queries of the caller can have.
func (who *Caller) Priority() int {
	if who.key == nil {
		return 0
	}
	return who.key.Priority
}

// needKey refuses a request that shows no key.
func (c *Control) needKey(app string) error {
	c.Count(app, NoKey)
	return &Refusal{Reason: NoKey, Cause: access.NeedKey}
}

// Forbid refuses a request whose key is good, but not for this.
func (c *Control) Forbid(app, cause string) error {
	c.Count(app, Forbidden)
	return &Refusal{Reason: Forbidden, Cause: cause}
}
