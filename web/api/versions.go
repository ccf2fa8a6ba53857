package api

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/topsail-serving/topsail/serving"
	"github.com/topsail-serving/topsail/serving/bundle"
	"github.com/topsail-serving/topsail/serving/catalog"
	"github.com/topsail-serving/topsail/web/problem"
	"github.com/topsail-serving/topsail/web/rest"
)

func (a *api) listVersions(w http.ResponseWriter, r *http.Request) error {
	v := a.view(r)
	m, err := v.scope.model(v.cat, r.PathValue("model"))
	if err != nil {
		return err
	}
	return a.pageOfVersions(w, r, v, versions(m), func(version *serving.Version) string { return version.Version })
}

func (a *api) listAllVersions(w http.ResponseWriter, r *http.Request) error {
	v := a.view(r)
	var all []*serving.Version
	for _, m := range v.models() {
		all = append(all, versions(m)...)
	}
	name := func(version *serving.Version) string { return version.ModelID.String() }
	slices.SortFunc(all, func(a, b *serving.Version) int { return strings.Compare(name(a), name(b)) })
	return a.pageOfVersions(w, r, v, all, name)
}

func (a *api) pageOfVersions(w http.ResponseWriter, r *http.Request, v view, all []*serving.Version, name func(*serving.Version) string) error {
	page, err := rest.PageOf(r, all, name, func(version *serving.Version) Version {
		doc := v.version(version)
		doc.Performance = a.Traffic.Performance(v.cat.Definitions(version))
		return doc
	})
	if err != nil {
		return err
	}
	return rest.Respond(w, http.StatusOK, page)
}

func (a *api) getVersion(w http.ResponseWriter, r *http.Request) error {
	v := a.view(r)
	version, err := v.scope.version(v.cat, versionOf(r))
	if err != nil {
		return err
	}
	return a.showVersion(w, r, http.StatusOK, v, version)
}

// versionOf is the version that the path names.
func versionOf(r *http.Request) serving.ModelID {
	return serving.ModelID{Model: r.PathValue("model"), Version: r.PathValue("version")}
}

// showVersion adds the example of the version's bundle, where that is there, and what its
// replicas did.
func (a *api) showVersion(w http.ResponseWriter, r *http.Request, status int, v view, version *serving.Version) error {
	doc := v.version(version)
	doc.Example, doc.Performance = a.example(r.Context(), version.Container), a.Traffic.Performance(v.cat.Definitions(version))
	return rest.Show(w, r, status, doc, v.tagOf(version))
}

func (a *api) createVersion(w http.ResponseWriter, r *http.Request) error {
	keep, err := rest.Flag(r, "keep_current")
	if err != nil {
		return err
	}
	replace, err := rest.Flag(r, "replace")
	if err != nil {
		return err
	}
	var doc Version
	if err := rest.ReadJSON(w, r, rest.MaxBody, &doc); err != nil {
		return err
	}
	model := r.PathValue("model")
	if doc.Model != "" && doc.Model != model {
		return rest.Invalid("model is %q, and the path says %q", doc.Model, model)
	}
	doc.Model = model
	version, err := doc.read()
	if err != nil {
		return err
	}
	if version.Deployed, err = ofCommit(r); err != nil {
		return err
	}
	return a.edit(w, r, keeping(r, func(v view) ([]catalog.Change, error) {
		if err := v.scope.changesModel(v.cat, model); err != nil {
			return nil, err
		}
		return a.putVersion(r.Context(), v.cat, version, keep, replace)
	}), func(before, after view) error {
		status := http.StatusCreated
		if before.cat.Version(version.ModelID) != nil {
			status = http.StatusOK
		}
		w.Header().Set("Location", root+"/models/"+url.PathEscape(model)+"/versions/"+url.PathEscape(version.Version))
		return a.showVersion(w, r, status, after, after.cat.Version(version.ModelID))
	})
}

// ofCommit is what a request says of where its versions come from; nil for nothing.
func ofCommit(r *http.Request) (*serving.Deployed, error) {
	commit, given, err := rest.Parameter(r, "commit")
	if err != nil || !given || commit == "" {
		return nil, err
	}
	d := &serving.Deployed{Commit: commit}
	return d, invalid(d.Check())
}

// putVersion plans to register a version, and to make it the current one unless keep.
// One that is registered already as it is needs the latter alone.
func (a *api) putVersion(ctx context.Context, cat *serving.Catalog, version *serving.Version, keep, replace bool) ([]catalog.Change, error) {
	ready, err := a.complete(ctx, cat, version)
	if err != nil {
		return nil, err
	}
	keep = keep || ready.Prepared
	changes := []catalog.Change{catalog.PutVersion{Version: *ready, KeepCurrent: keep, Replace: replace}}
	after, err := catalog.Apply(cat, changes[0], 0)
	if err != nil {
		return nil, err
	}
	if m := after.Models[ready.Model]; !keep && m.Current != ready.Version {
		changes = append(changes, catalog.SetCurrent{ID: ready.ModelID})
	}
	return changes, nil
}

// complete is the version with its defaults and what the manifest of its bundle says of
// it, checked.
func (a *api) complete(ctx context.Context, cat *serving.Catalog, version *serving.Version) (*serving.Version, error) {
	v := *version
	old := cat.Version(v.ModelID)
	v.Batch.Strategy = v.Batch.StrategyName()
	if old != nil && old.Container.Bundle == v.Container.Bundle && v.Container.Bundle != "" {
		// What runs already must not depend on the bundle still being here.
		if v.InputType == 0 {
			v.InputType, v.InputLength, v.Signature = old.InputType, old.InputLength, old.Signature
		}
	} else if v.Container.Bundle != "" && v.Container.BundleURL == "" {
		if err := a.fromBundle(ctx, &v); err != nil {
			return nil, err
		}
	}
	if err := v.Check(); err != nil {
		return nil, invalid(err)
	}
	if old == nil || old.Replicas == 0 && old.Scale == nil {
		if err := startable(&v, v.Replicas > 0 || v.Scale != nil); err != nil {
			return nil, err
		}
	}
	return &v, invalid(CheckRunnable(a.Mode, &v))
}

// startable refuses that a version is to have replicas which has nothing to run.
func startable(v *serving.Version, wanted bool) error {
	if err := v.Container.Check(); err != nil && wanted && !v.Prepared && v.OwnReplicas() {
		return rest.Invalid("version %q of model %q: %v", v.Version, v.Model, err)
	}
	return nil
}

// alterVersion changes a version that exists.
func (a *api) alterVersion(w http.ResponseWriter, r *http.Request, plan func(view, *serving.Version) ([]catalog.Change, error)) error {
	id := versionOf(r)
	return a.editIf(w, r, func(v view) (string, error) {
		version, err := v.scope.version(v.cat, id)
		if err != nil {
			return "", err
		}
		return v.tagOf(version), v.scope.changesModel(v.cat, id.Model)
	}, func(v view) ([]catalog.Change, error) {
		return plan(v, v.cat.Version(id))
	}, func(_, after view) error {
		if version := after.cat.Version(id); version != nil {
			return a.showVersion(w, r, http.StatusOK, after, version)
		}
		w.WriteHeader(http.StatusNoContent)
		return nil
	})
}

func (a *api) deleteVersion(w http.ResponseWriter, r *http.Request) error {
	return a.alterVersion(w, r, func(v view, version *serving.Version) ([]catalog.Change, error) {
		if err := unused(v.cat, version.ModelID); err != nil {
			return nil, err
		}
		return []catalog.Change{catalog.DeleteVersion{ID: version.ModelID}}, nil
	})
}

// unused refuses to delete a version that may get queries.
func unused(cat *serving.Catalog, id serving.ModelID) error {
	m, apps := cat.Models[id.Model], asking(cat, id.Model)
	switch {
	case len(apps) == 0:
		return nil
	case m.Current == id.Version:
		return inUse("version %q is the current one of model %q, which %s calls; make another one current, or unlink the model", id.Version, id.Model, appList(apps))
	case m.Serving == id.Version:
		return inUse("version %q of model %q answers %s until version %q has a ready replica; wait for that, or unlink the model",
			id.Version, id.Model, appList(apps), m.Current)
	}
	apps = slices.DeleteFunc(apps, func(name string) bool { return !slices.Contains(cat.Apps[name].Pins(), id) })
	if len(apps) > 0 {
		return inUse("version %q of model %q is named by the policy of %s; change that first", id.Version, id.Model, appList(apps))
	}
	return nil
}

// scaleBody is what setScale takes: one of both, or both.
type scaleBody struct {
	Replicas *int               `json:"replicas"`
	Scale    *serving.ScaleSpec `json:"scale"`
}

func (a *api) setScale(w http.ResponseWriter, r *http.Request) error {
	var body scaleBody
	if err := rest.ReadJSON(w, r, rest.MaxBody, &body); err != nil {
		return err
	}
	if body.Replicas == nil && body.Scale == nil {
		return rest.Invalid("give replicas, the number, or scale, the bounds between which it follows demand")
	}
	return a.alterVersion(w, r, func(_ view, version *serving.Version) ([]catalog.Change, error) {
		c := catalog.SetScale{ID: version.ModelID, Replicas: version.Replicas, Scale: body.Scale}
		if body.Replicas != nil {
			c.Replicas = *body.Replicas
		}
		return []catalog.Change{c}, startable(version, c.Scale != nil || c.Replicas > 0)
	})
}

func (a *api) setPin(w http.ResponseWriter, r *http.Request) error {
	var pin serving.Pin
	if err := rest.ReadJSON(w, r, rest.MaxBody, &pin); err != nil {
		return err
	}
	if !pin.Until.IsZero() && !pin.Until.After(a.Now()) {
		return rest.Invalid("until is in the past; leave it out to keep the number until the pin is released")
	}
	return a.alterVersion(w, r, func(_ view, version *serving.Version) ([]catalog.Change, error) {
		return []catalog.Change{catalog.SetPin{ID: version.ModelID, Pin: &pin}}, startable(version, pin.Count > 0)
	})
}

func (a *api) releasePin(w http.ResponseWriter, r *http.Request) error {
	return a.alterVersion(w, r, func(_ view, version *serving.Version) ([]catalog.Change, error) {
		return []catalog.Change{catalog.SetPin{ID: version.ModelID}}, nil
	})
}

// manifest is what the API reads of a bundle's manifest.
type manifest struct {
	Runtime     string             `json:"runtime"`
	InputType   serving.InputType  `json:"input_type"`
	InputLength int                `json:"input_length"`
	Signature   *serving.Signature `json:"signature"`
	Example     json.RawMessage    `json:"example"`
}

// fromBundle takes what v does not say of its input from its bundle, and refuses a
// bundle that is not here or cannot run here.
func (a *api) fromBundle(ctx context.Context, v *serving.Version) error {
	if !isDigest(v.Container.Bundle) {
		return rest.Invalid("bundle must be a digest, sha256:… with 64 hexadecimal digits")
	}
	artifact, err := a.Artifacts.Get(ctx, v.Container.Bundle)
	if err != nil && problemOf(err).Status == http.StatusNotFound {
		return problem.New(http.StatusBadRequest, "no_bundle",
			fmt.Sprintf("the bundle %s is not stored here: upload it first, or give its bundle_url", v.Container.Bundle))
	}
	if err != nil {
		return err
	}
	if a.CheckBundle != nil {
		if err := a.CheckBundle(artifact.Manifest); err != nil {
			return problem.New(http.StatusBadRequest, "not_runnable", oneLine(err))
		}
	}
	var m manifest
	if err := json.Unmarshal(artifact.Manifest, &m); err != nil {
		return rest.Invalid("the manifest of the bundle %s cannot be read: %v", v.Container.Bundle, err)
	}
	if err := checkRuntime(v, m.Runtime); err != nil {
		return err
	}
	if v.Signature == nil && (v.InputType == 0 || v.InputType == m.InputType) {
		v.Signature = m.Signature
	}
	if v.InputType == 0 {
		v.InputType = v.Signature.Complete(m.InputType)
	}
	if v.InputLength == 0 && v.InputType == m.InputType {
		v.InputLength = m.InputLength
	}
	return nil
}

// checkRuntime refuses a bundle that cannot be what the version makes of it.
func checkRuntime(v *serving.Version, runtime string) error {
	switch {
	case v.Host != nil && runtime != bundle.HostRuntime && runtime != bundle.CommandRuntime:
		return rest.Invalid("a host runs a bundle with the runtime %q or %q, and this one has %q", bundle.HostRuntime, bundle.CommandRuntime, runtime)
	case v.Host == nil && runtime == bundle.HostRuntime:
		return rest.Invalid("the bundle has the runtime %q: give the version host.memory_mb, the memory of its models", bundle.HostRuntime)
	case v.HostedBy == "" && runtime == bundle.LoRARuntime:
		return rest.Invalid("the bundle has the runtime %q, an adapter, which an engine loads: set hosted_by, the model of an engine that is a host", runtime)
	case v.HostedBy != "" && slices.Contains([]string{bundle.CommandRuntime, bundle.PMMLRuntime, "r", "pyspark"}, runtime):
		return rest.Invalid("a host cannot load the runtime %q, which is a separate program: leave hosted_by out", runtime)
	}
	return nil
}

// example is an input as JSON from the manifest of a container's bundle, or "".
func (a *api) example(ctx context.Context, c serving.Container) string {
	if !isDigest(c.Bundle) || c.BundleURL != "" {
		return ""
	}
	var m manifest
	artifact, err := a.Artifacts.Get(ctx, c.Bundle)
	if err != nil || json.Unmarshal(artifact.Manifest, &m) != nil {
		return "" // a version is shown without its bundle, too
	}
	return string(m.Example)
}
