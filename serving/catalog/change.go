package catalog

import (
	"fmt"
	"slices"

	"github.com/topsail-serving/topsail/serving"
)

// Change is one change of a catalog, as the API asks for it: PutApp, DeleteApp,
// PutVersion, Renew, DeleteVersion, DeleteModel, Link, Unlink, SetCurrent, SetServing, SetScale,
// SetPin, AddKey, RevokeKey, PutStream, DeleteStream, SuspendStream, ResumeStream, MapStream,
// Import or Restore; All of some, or one of these Signed.
type Change interface {
	apply(*draft) error
}

// Apply returns the catalog after change, one revision on, or cat itself where
// the change asks for what is already so. Neither cat nor change is written to
// or shared with the result, except for objects that stay as they are.
//
// An ifRevision other than 0 makes the change conditional: it fails with
// ErrConflict unless cat has that revision. A change whose result would break a
// rule of serving fails with ErrInvalid.
func Apply(cat *serving.Catalog, change Change, ifRevision uint64) (*serving.Catalog, error) {
	if ifRevision != 0 && ifRevision != cat.Revision {
		return nil, fmt.Errorf("%w: it is at revision %d, not %d; read it again and repeat the change", ErrConflict, cat.Revision, ifRevision)
	}
	d := newDraft(cat)
	if err := change.apply(d); err != nil {
		return nil, err
	}
	return d.finish()
}

// PutApp creates an app or replaces the one of that name, links included.
type PutApp struct {
	App    serving.App // Origin is ignored: a new or changed app is the API's
	Create bool        // fail with ErrExists rather than replace
}

func (c PutApp) apply(d *draft) error {
	app, err := ownApp(c.App, serving.FromAPI)
	if err != nil {
		return invalid(err)
	}
	old := d.Apps[app.Name]
	switch {
	case old == nil && serving.NewlyReserved(app.Name):
		return invalid(fmt.Errorf("app name %q is reserved", app.Name))
	case old != nil && c.Create:
		return fmt.Errorf("app %q %w", app.Name, ErrExists)
	case old != nil && sameApp(old, app):
		return nil
	}
	d.putApp(app)
	return nil
}

// DeleteApp deletes an app and with it its links.
type DeleteApp struct{ Name string }

func (c DeleteApp) apply(d *draft) error {
	if d.Apps[c.Name] == nil {
		return appNotFound(c.Name)
	}
	d.deleteApp(c.Name)
	return nil
}

// PutVersion registers a model version and makes it the current one. A version
// is immutable: to put it again with the same definition changes nothing, and
// with another one fails with ErrExists, which says what differs, unless it is to
// replace the version.
type PutVersion struct {
	Version     serving.Version // Origin is ignored: a new version is the API's
	KeepCurrent bool            // leave the current version of the model as it is
	Replace     bool            // the version of that name, if there is one
}

func (c PutVersion) apply(d *draft) error {
	v, err := ownVersion(c.Version, serving.FromAPI)
	if err != nil {
		return invalid(err)
	}
	if old := d.Version(v.ModelID); old != nil {
		v.Pin = old.Pin // an operator's
		switch {
		case sameVersion(old, v):
			return nil
		case old.Prepared && completes(v, old):
			return d.complete(old, v, !c.KeepCurrent)
		case !c.Replace:
			return redefined(v.ModelID, differing(old, v))
		}
	}
	d.putVersion(v)
	if !c.KeepCurrent {
		d.setCurrent(v.ModelID)
	}
	return nil
}

// completes says whether v registers what was prepared: the same thing, by its input
// and by what is run, and nothing that was prepared otherwise.
func completes(v, prepared *serving.Version) bool {
	same := !v.Prepared && v.InputType == prepared.InputType &&
		v.Container.Image == prepared.Container.Image && v.Container.Bundle == prepared.Container.Bundle
	return same && !slices.ContainsFunc(Redefined(prepared, v), func(f Field) bool { return f.Is != "" })
}

// complete registers a prepared version: with the replicas that it was prepared for,
// and the description, labels and batch size of its registration.
func (d *draft) complete(prepared, v *serving.Version, current bool) error {
	own := *prepared
	own.Prepared, own.Description, own.Labels, own.Batch = false, v.Description, v.Labels, v.Batch
	d.putVersion(&own)
	if current {
		d.setCurrent(own.ModelID)
	}
	return nil
}

// Renew makes a new generation of a version that is registered as before: what its
// container is made from has changed. A version that is another generation already stays.
type Renew struct{ Old serving.Definition }

func (c Renew) apply(d *draft) error {
	old := d.Version(c.Old.ModelID)
	if old == nil {
		return versionNotFound(c.Old.Model, c.Old.Version)
	}
	if old.Generation != c.Old.Generation {
		return nil
	}
	v := *old
	v.Deployed = nil // no commit has what was edited
	d.putGeneration(&v)
	return nil
}

// DeleteVersion deletes a model version. Where it is the current one, the model
// has none afterwards; the last version takes the model and all links to it along.
type DeleteVersion struct{ ID serving.ModelID }

func (c DeleteVersion) apply(d *draft) error {
	if d.Version(c.ID) == nil {
		return versionNotFound(c.ID.Model, c.ID.Version)
	}
	d.deleteVersion(c.ID)
	d.dropLinksToNothing()
	return nil
}

// DeleteModel deletes a model with all its versions and all links to it.
type DeleteModel struct{ Name string }

func (c DeleteModel) apply(d *draft) error {
	if d.Models[c.Name] == nil {
		return modelNotFound(c.Name)
	}
	d.deleteModel(c.Name)
	d.dropLinksToNothing()
	return nil
}

// Link links a model to an app, after those that are linked already. It fails with
// ErrInvalid where the app's policy does not take it.
type Link struct{ App, Model string }

func (c Link) apply(d *draft) error {
	app := d.Apps[c.App]
	switch {
	case app == nil:
		return appNotFound(c.App)
	case d.Models[c.Model] == nil:
		return modelNotFound(c.Model)
	case slices.Contains(app.Models, c.Model):
		return fmt.Errorf("the link from app %q to model %q %w", c.App, c.Model, ErrExists)
	}
	d.setLinks(app, slices.Concat(app.Models, []string{c.Model}))
	if err := d.Apps[c.App].Check(); err != nil {
		return invalid(err)
	}
	return nil
}

// Unlink removes one link.
type Unlink struct{ App, Model string }

func (c Unlink) apply(d *draft) error {
	app := d.Apps[c.App]
	switch {
	case app == nil:
		return appNotFound(c.App)
	case !slices.Contains(app.Models, c.Model):
		return fmt.Errorf("the link from app %q to model %q %w", c.App, c.Model, ErrNotFound)
	}
	d.unlink(c)
	return nil
}

// SetCurrent makes a registered version the current one of its model.
type SetCurrent struct{ ID serving.ModelID }

func (c SetCurrent) apply(d *draft) error {
	switch {
	case d.Models[c.ID.Model] == nil:
		return modelNotFound(c.ID.Model)
	case d.Version(c.ID) == nil:
		return versionNotFound(c.ID.Model, c.ID.Version)
	}
	d.setCurrent(c.ID)
	return nil
}

// SetServing notes that versions, each current and with a ready replica, serve.
type SetServing []serving.ModelID

func (c SetServing) apply(d *draft) error {
	for _, id := range c {
		if d.Version(id) == nil {
			return versionNotFound(id.Model, id.Version)
		}
		d.setServing(id)
	}
	return nil
}

// SetScale changes how many replicas a version has, which is not part of what
// makes it the version it is.
type SetScale struct {
	ID       serving.ModelID
	Replicas int                // when Scale is nil
	Scale    *serving.ScaleSpec // nil: a fixed number
}

func (c SetScale) apply(d *draft) error {
	old := d.Version(c.ID)
	if old == nil {
		return versionNotFound(c.ID.Model, c.ID.Version)
	}
	v := *old
	v.Replicas, v.Scale = c.Replicas, c.Scale
	return d.replaceVersion(old, v)
}

// SetPin pins the number of replicas of a version, or with nil takes the pin away.
type SetPin struct {
	ID  serving.ModelID
	Pin *serving.Pin
}

func (c SetPin) apply(d *draft) error {
	old := d.Version(c.ID)
	if old == nil {
		return versionNotFound(c.ID.Model, c.ID.Version)
	}
	v := *old
	v.Pin = c.Pin
	return d.replaceVersion(old, v)
}
