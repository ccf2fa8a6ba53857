package models

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"

	"github.com/topsail-serving/topsail/internal/apiclient"
	"github.com/topsail-serving/topsail/stream"
)

// deployment is a model on its way to being a version. To take the way again changes
// nothing that was done: it goes on where it was left.
type deployment struct {
	handler *handler
	model   *Model
	origin  origin
	parcel  *parcel // nil: it is not made yet
	linked  bool    // an update before saw to it that the apps ask the model, and others may have changed that since
}

// run deploys the model as far as it is not. It fails with a rejection, or with what may pass.
func (d *deployment) run(ctx context.Context) (Acknowledgement, error) {
	ack := Acknowledgement{Outcome: Deployed, Model: d.model.Name, Version: d.model.Version}
	versions, err := d.handler.api.versions(ctx, d.model.Name)
	if err != nil {
		return ack, err
	}
	if at := slices.IndexFunc(versions, func(v version) bool { return v.Version == d.model.Version }); at >= 0 {
		made, ours := parseOrigin(versions[at].Labels)
		ack.Bundle = versions[at].Bundle
		switch {
		case !ours && !(d.model.Kind == bundleKind && versions[at].Bundle == "sha256:"+d.model.sum()):
			return ack, rejected(Conflict, "version %q of model %q exists, and was not made by a stream: use a new version", d.model.Version, d.model.Name)
		case ours && made.content != d.origin.content:
			return ack, rejected(Conflict, "version %q of model %q exists with another content, by the update %s (%s, and this one has %s): versions are immutable, so use a new one, or delete that one first",
				d.model.Version, d.model.Name, made.update, made.content, d.origin.content)
		case !ours || !made.same(d.origin):
			ack.Outcome = Unchanged
			if d.linked {
				return ack, nil
			}
			if err := d.appsAreThere(ctx); err != nil {
				return ack, err
			}
			return ack, d.link(ctx) // which was refused before, where the update is sent again for that
		}
		d.origin.late = made.late // a try before came as far as this, and was not committed
	} else if ack.Bundle, err = d.register(ctx, versions); err != nil {
		return ack, err
	}
	if err := d.link(ctx); err != nil {
		return ack, err
	}
	if d.origin.late {
		ack.Outcome = Outdated
	}
	if err := d.settle(ctx); err != nil {
		return ack, err
	}
	return ack, d.handler.trim(ctx, d.model.Name)
}

// register uploads the bundle and makes the version of it, which is current from then on
// unless a newer update was there before.
func (d *deployment) register(ctx context.Context, versions []version) (digest string, err error) {
	if why := d.handler.cfg.Locations.checkArtifacts(members(d.model.Settings)["artifacts"]); why != nil {
		return "", why
	}
	if err := d.appsAreThere(ctx); err != nil {
		return "", err
	}
	if d.model.HostedBy != "" {
		if err := d.handler.api.find(ctx, "model", d.model.HostedBy); err != nil {
			return "", err
		}
	}
	if _, err := d.members(ctx); err != nil { // before anything is fetched
		return "", err
	}
	if err := d.make(ctx); err != nil {
		return "", err
	}
	if digest, err = d.upload(ctx); err != nil {
		return "", refused(err, "its bundle")
	}
	d.origin.late = !d.model.KeepCurrent && newest(versions, d.origin) != ""
	members, err := d.members(ctx)
	if err != nil {
		return "", err
	}
	members["version"], members["bundle"], members["description"] = d.model.Version, digest, d.model.summary()
	members["labels"] = d.origin.relabel(texts(members["labels"]))
	keep := d.model.KeepCurrent || d.origin.late
	_, err = d.handler.api.do(ctx, apiclient.Request{
		Method: http.MethodPost, Path: []string{"models", d.model.Name, "versions"}, Body: members, Query: url.Values{"keep_current": {fmt.Sprint(keep)}},
	}, nil)
	if exists(err) || hasCode(err, "no_bundle") {
		return "", errAgain // another client made it meanwhile, or removed the bundle: the next look says what it is
	}
	return digest, refused(err, "the version")
}

// members are those of the version that the model makes now in the place of the current one.
func (d *deployment) members(ctx context.Context) (map[string]any, error) {
	replaced, err := d.handler.api.replaced(ctx, d.model.Name)
	if err != nil {
		return nil, err
	}
	members := d.model.settled(replaced)
	if d.model.Kind != bundleKind && members[inputType] == nil && members["signature"] == nil && members["host"] == nil {
		return nil, rejected(Invalid, "a model of kind %s needs an input_type, or a version to take it from: bytes, ints, floats, doubles or strings", d.model.Kind)
	}
	return members, nil
}

// upload stores the bundle. Where there is no room, old versions that this stream made go first.
func (d *deployment) upload(ctx context.Context) (digest string, err error) {
	for {
		digest, err = d.handler.api.upload(ctx, d.parcel.bundle)
		if !hasCode(err, "full") {
			return digest, err
		}
		freed, failed := d.handler.makeRoom(ctx, d.parcel.bundle)
		if !freed || failed != nil {
			return "", errors.Join(err, failed)
		}
	}
}

// make makes the bundle, once.
func (d *deployment) make(ctx context.Context) error {
	if d.parcel != nil {
		return nil
	}
	f, why := factoryOf(d.model.Kind, d.handler.cfg.Kinds)
	if why != nil {
		return why
	}
	p, err := newParcel()
	if err != nil {
		return err
	}
	content, err := d.content(ctx)
	if err == nil {
		err = p.receive(d.model, content, d.handler.cfg.MaxModel)
		_ = content.Close() // it was only read
	}
	if err == nil {
		err = p.pack(f, d.model, d.handler.cfg.Python, d.handler.cfg.MaxModel)
	}
	if err != nil {
		p.remove()
		return err
	}
	d.parcel = p
	return nil
}

// content opens the model itself.
func (d *deployment) content(ctx context.Context) (io.ReadCloser, error) {
	if d.model.Location == "" {
		return io.NopCloser(bytes.NewReader(d.model.Data)), nil
	}
	return d.handler.cfg.Locations.open(ctx, d.model.Location, d.model.Archive && d.model.anyContent)
}

// appsAreThere looks for the apps before anything is done.
func (d *deployment) appsAreThere(ctx context.Context) error {
	for _, name := range d.model.Apps {
		if err := d.handler.api.find(ctx, "app", name); err != nil {
			return err
		}
	}
	return nil
}

// link has the apps ask the model.
func (d *deployment) link(ctx context.Context) error {
	for _, name := range d.model.Apps {
		_, err := d.handler.api.do(ctx, apiclient.Request{Method: http.MethodPut, Path: []string{"apps", name, "links", d.model.Name}}, nil)
		if err := refused(err, fmt.Sprintf("the version is registered; that app %s asks it", name)); err != nil {
			return err
		}
	}
	return nil
}

// settle sees to it that the newest update stays current, also where two processes
// deployed at a time.
func (d *deployment) settle(ctx context.Context) error {
	if d.model.KeepCurrent || d.origin.late {
		return nil
	}
	var m struct {
		Current string `json:"current"`
	}
	etag, err := d.handler.api.do(ctx, apiclient.Request{Method: http.MethodGet, Path: []string{"models", d.model.Name}}, &m)
	if err != nil || m.Current != d.model.Version {
		return err
	}
	versions, err := d.handler.api.versions(ctx, d.model.Name)
	if err != nil {
		return err
	}
	winner := newest(versions, d.origin)
	if winner == "" {
		return nil
	}
	_, err = d.handler.api.do(ctx, apiclient.Request{
		Method: http.MethodPut, Path: []string{"models", d.model.Name, "current"}, Body: map[string]string{"version": winner}, IfMatch: etag,
	}, nil)
	if is(err, http.StatusPreconditionFailed, http.StatusNotFound) { // or the winner was deleted
		return errAgain
	}
	return err
}

// newest is the version that the newest update made of those that came after an origin, or "".
func newest(versions []version, than origin) (name string) {
	for _, v := range versions {
		if made, ok := parseOrigin(v.Labels); ok && !made.kept && made.after(than) {
			name, than = v.Version, made
		}
	}
	return name
}

// checked says what is wrong with the model, or nil.
func (d *deployment) checked() *stream.Rejection {
	if _, why := factoryOf(d.model.Kind, d.handler.cfg.Kinds); why != nil {
		return why
	}
	if err := d.model.check(); err != nil {
		return rejected(Invalid, "%v", err)
	}
	return nil
}
