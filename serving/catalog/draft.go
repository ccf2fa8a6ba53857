package catalog

import (
	"maps"
	"slices"
	"time"

	"github.com/topsail-serving/topsail/serving"
)

// draft is the next catalog while it is made. Its maps are its own; objects
// are shared with the base and are replaced, never written to.
type draft struct {
	serving.Catalog
	base    *serving.Catalog
	by      serving.Author // the author of the change; zero: it is not signed
	changed bool
}

func newDraft(base *serving.Catalog) *draft {
	d := &draft{base: base, Catalog: serving.Catalog{
		Revision: base.Revision,
		Apps:     make(map[string]*serving.App, len(base.Apps)+1),
		Models:   make(map[string]*serving.Model, len(base.Models)+1),
		Keys:     make(map[string]*serving.Key, len(base.Keys)+1),
		Streams:  make(map[string]*serving.Stream, len(base.Streams)+1),
	}}
	maps.Copy(d.Apps, base.Apps)
	maps.Copy(d.Models, base.Models)
	maps.Copy(d.Keys, base.Keys)
	maps.Copy(d.Streams, base.Streams)
	return d
}

// finish returns the new catalog, or the base where nothing has changed.
func (d *draft) finish() (*serving.Catalog, error) {
	if !d.changed {
		return d.base, nil
	}
	if err := d.Check(); err != nil {
		return nil, invalid(err)
	}
	next := d.Catalog // a copy: a pointer into the draft would keep its base alive
	next.Revision++
	return &next, nil
}

func (d *draft) putApp(app *serving.App) {
	d.Apps[app.Name] = app
	d.changed = true
}

func (d *draft) deleteApp(name string) {
	delete(d.Apps, name)
	d.changed = true
}

func (d *draft) setLinks(app *serving.App, models []string) {
	linked := *app
	linked.Models = models
	d.putApp(&linked)
}

func (d *draft) unlink(l Unlink) {
	app := d.Apps[l.App]
	d.setLinks(app, slices.DeleteFunc(slices.Clone(app.Models), func(m string) bool { return m == l.Model }))
}

// dropLinks removes the links that dead picks out and returns them, in order.
func (d *draft) dropLinks(dead func(app *serving.App, model string) bool) []Unlink {
	var dropped []Unlink
	for _, name := range slices.Sorted(maps.Keys(d.Apps)) {
		for _, model := range d.Apps[name].Models {
			if dead(d.Apps[name], model) {
				dropped = append(dropped, Unlink{App: name, Model: model})
			}
		}
	}
	for _, l := range dropped {
		d.unlink(l)
	}
	return dropped
}

// dropLinksToNothing removes the links to models that are not there.
func (d *draft) dropLinksToNothing() {
	d.dropLinks(func(_ *serving.App, model string) bool { return d.Models[model] == nil })
}

// changeModel puts a copy of the model, or a new one, in the draft to write to.
func (d *draft) changeModel(name string) *serving.Model {
	m := serving.Model{Name: name, Versions: map[string]*serving.Version{}}
	if old := d.Models[name]; old != nil {
		m.Current, m.Serving, m.Previous, m.FileSays = old.Current, old.Serving, old.Previous, old.FileSays
		maps.Copy(m.Versions, old.Versions)
	}
	d.Models[name] = &m
	d.changed = true
	return &m
}

// putVersion puts a version in place of the one of its name, if there is one. It gives it a new
// generation if its answers may differ from before.
func (d *draft) putVersion(v *serving.Version) {
	if old := d.Version(v.ModelID); old != nil && len(Redefined(old, v)) == 0 {
		v.Generation, v.Deployed = old.Generation, old.Deployed
		d.changeModel(v.Model).Versions[v.Version] = v
	} else {
		d.putGeneration(v)
	}
}

// putGeneration puts a version as a new generation, which the change's author deploys. Of
// what the version says of that itself only the commit counts.
func (d *draft) putGeneration(v *serving.Version) {
	commit := ""
	if v.Deployed != nil {
		commit = v.Deployed.Commit
	}
	v.Generation, v.Deployed = serving.NewGeneration(), nil
	if d.by != (serving.Author{}) {
		v.Deployed = &serving.Deployed{By: d.by.Who, At: time.Now().UTC().Truncate(time.Millisecond), Client: d.by.Client, Commit: commit}
	}
	d.changeModel(v.Model).Versions[v.Version] = v
}

// deleteVersion leaves links to a model that goes with its last version for the
// caller to drop.
func (d *draft) deleteVersion(id serving.ModelID) {
	m := d.changeModel(id.Model)
	delete(m.Versions, id.Version)
	if m.Current == id.Version {
		m.Current = ""
	}
	if m.Previous == id.Version {
		m.Previous = ""
	}
	if m.Serving == id.Version {
		m.Serving = ""
	}
	if len(m.Versions) == 0 {
		delete(d.Models, id.Model)
	}
}

// deleteModel leaves links to the model for the caller to drop.
func (d *draft) deleteModel(name string) {
	delete(d.Models, name)
	d.changed = true
}

func (d *draft) setCurrent(id serving.ModelID) {
	if was := d.Models[id.Model].Current; was != id.Version {
		m := d.changeModel(id.Model)
		m.Current = id.Version
		if was != "" {
			m.Previous = was
		} else if m.Previous == id.Version {
			m.Previous = ""
		}
	}
}

func (d *draft) setFileSays(model, version string) {
	if d.Models[model].FileSays != version {
		d.changeModel(model).FileSays = version
	}
}

func (d *draft) setServing(id serving.ModelID) {
	if d.Models[id.Model].Serving != id.Version {
		d.changeModel(id.Model).Serving = id.Version
	}
}

// replaceVersion puts v, changed from old in what may change, in old's place.
func (d *draft) replaceVersion(old *serving.Version, v serving.Version) error {
	changed, err := ownVersion(v, old.Origin)
	if err != nil {
		return invalid(err)
	}
	if !sameVersion(old, changed) {
		d.putVersion(changed)
	}
	return nil
}
