package catalog

import (
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"

	"github.com/topsail-serving/topsail/serving"
)

// Merge returns cat with the objects of a configuration file in it, one revision
// on, or cat itself where the file changes nothing. It keeps these rules:
//
//   - What the file defines replaces what is stored under the same name, links
//     included, and is the file's from then on. A version whose answers may be others
//     than before is a new generation of it.
//   - What an earlier file defined and this one does not is removed. What was
//     made through the API, or applied as another file, is never removed.
//   - The current version of a model is the one given in current. For a model of
//     the file without one it is the version listed last; only a current version
//     made through the API outlives that, until the file lists a new last version.
//   - A version that was made current since the file was merged last stays so, until
//     the file says another one than it did then.
//   - A link that an app of another origin has to a model that the file takes
//     away, or gives another input type, is removed.
//
// The file as a whole must be right: an object that is listed twice or breaks a
// rule of serving fails the merge with ErrInvalid, and nothing is merged.
func Merge(cat *serving.Catalog, apps []serving.App, versions []serving.Version, current map[string]string) (*serving.Catalog, Report, error) {
	d, report, err := merged(cat, serving.Author{Who: serving.ByFile}, Import{Apps: apps, Versions: versions, Current: current, Replace: true}, true)
	if err != nil {
		return nil, nil, err
	}
	next, err := d.finish()
	if err != nil {
		return nil, nil, err
	}
	for _, o := range OtherLengths(cat, next) {
		report.warn("app %q: its clients have to send inputs of length %d, which %v takes; %v took %d", o.App, o.Now.InputLength, o.Now, o.Was, o.Was.InputLength)
	}
	return next, report, nil
}

// merge is one run of Merge: the draft on its way and the sentences about it.
type merge struct {
	*draft
	file   *file
	keep   bool // what is no longer in the file
	starts bool // it is the file that a process starts with, and not one that is applied
	report Report
}

// ours says whether an object of an origin is one that the file may take away, and that makes way
// for it without a word. What a start brought may be applied again; not the other way around.
func (m *merge) ours(origin serving.Origin) bool {
	return origin == serving.FromFile || origin == serving.FromApply && !m.starts
}

// origin is that of an object of the file, which had another one before, or none.
func (m *merge) origin(before serving.Origin) serving.Origin {
	if m.starts || before == serving.FromFile {
		return serving.FromFile
	}
	return serving.FromApply
}

func merged(cat *serving.Catalog, by serving.Author, c Import, starts bool) (*draft, Report, error) {
	f, err := readFile(c.Apps, c.Versions, c.Current)
	if err != nil {
		return nil, nil, invalid(err)
	}
	m := merge{draft: newDraft(cat), file: f, keep: c.Keep, starts: starts}
	m.by = by
	if err := m.checkVersions(c.Replace); err != nil {
		return nil, nil, err
	}
	m.mergeVersions()
	if err := m.mergeCurrent(); err != nil {
		return nil, nil, invalid(err)
	}
	m.mergeApps()
	m.dropBrokenLinks()
	return m.draft, m.report, nil
}

// checkVersions says which versions would be redefined though they may not be.
func (m *merge) checkVersions(replace bool) error {
	var errs []error
	for _, id := range slices.SortedFunc(maps.Keys(m.file.versions), serving.ModelID.Compare) {
		v, old := m.file.versions[id], m.Version(id)
		if old == nil || replace {
			continue
		}
		if fields := Redefined(old, v); len(fields) > 0 {
			errs = append(errs, redefined(id, fields))
		}
	}
	return errors.Join(errs...)
}

// mergeVersions puts first and deletes then, so that no model disappears, with
// its links, only to come back.
func (m *merge) mergeVersions() {
	for _, id := range slices.SortedFunc(maps.Keys(m.file.versions), serving.ModelID.Compare) {
		v, old := m.file.versions[id], m.Version(id)
		was, same := serving.Origin(""), false
		if old != nil {
			v.Pin = old.Pin // an operator's, and none of the file's business
			was, same = old.Origin, sameVersion(old, v)
		}
		if same && m.ours(was) {
			continue
		}
		v.Origin = m.origin(was)
		m.putVersion(v)
		m.report.took(describe(id), was, same, slog.LevelWarn)
		if old != nil && old.Generation != v.Generation {
			m.report.warn("%s is redefined as a new generation, whose replicas start again: %s", describe(id), sentence(Redefined(old, v)))
		}
	}
	for _, name := range slices.Sorted(maps.Keys(m.Models)) {
		m.deleteStaleVersions(m.Models[name])
	}
}

func (m *merge) deleteStaleVersions(model *serving.Model) {
	if m.keep {
		return
	}
	for _, name := range slices.Sorted(maps.Keys(model.Versions)) {
		v := model.Versions[name]
		if m.ours(v.Origin) && m.file.versions[v.ModelID] == nil {
			m.deleteVersion(v.ModelID)
			m.report.info("%s is no longer in the file and is removed", describe(v.ModelID))
		}
	}
}

func (m *merge) mergeCurrent() error {
	names := maps.Clone(m.file.last)
	maps.Copy(names, m.file.current)
	for _, model := range slices.Sorted(maps.Keys(names)) {
		want := serving.ModelID{Model: model, Version: cmp.Or(m.file.current[model], m.file.last[model])}
		if m.Version(want) == nil {
			return fmt.Errorf("the current version of model %q is to be %q, which does not exist", model, want.Version)
		}
		m.makeCurrent(want, m.starts && m.Models[model].FileSays == want.Version)
		if m.starts {
			m.setFileSays(model, want.Version)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(m.Models)) {
		if _, said := names[name]; !said && m.starts {
			m.setFileSays(name, "")
		}
		if old := m.base.Models[name]; old != nil && old.Current != "" && m.Models[name].Current == "" {
			m.report.warn("model %q: version %q was current and is removed; make another one current", name, old.Current)
		}
	}
	return nil
}

// makeCurrent makes the version that the file says current, unless it is to yield to
// what was made current since.
func (m *merge) makeCurrent(want serving.ModelID, yield bool) {
	was := m.Models[want.Model].Current
	added := m.base.Version(want) == nil
	now := m.Version(serving.ModelID{Model: want.Model, Version: was})
	switch {
	case was == want.Version:
		return
	case now == nil:
		m.report.info("model %q: version %q is current now", want.Model, want.Version)
	case added:
		m.report.info("model %q: version %q is current now; it was %q", want.Model, want.Version, was)
	case !m.ours(now.Origin) && m.file.current[want.Model] == "":
		m.report.info("model %q: version %q, %s, stays current, and the file's %q waits", want.Model, was, came(now.Origin), want.Version)
		return
	case yield:
		m.report.info("model %q: version %q, made current since the file was read last, stays current; the file says %q", want.Model, was, want.Version)
		return
	default:
		m.report.warn("model %q: version %q is current now, as the file says; it was %q", want.Model, want.Version, was)
	}
	m.setCurrent(want)
}

func (m *merge) mergeApps() {
	for _, name := range slices.Sorted(maps.Keys(m.file.apps)) {
		app, old := m.file.apps[name], m.Apps[name]
		was, same := serving.Origin(""), false
		if old != nil {
			was, same = old.Origin, sameApp(old, app)
		}
		if same && m.ours(was) {
			continue
		}
		app.Origin = m.origin(was)
		m.putApp(app)
		m.report.took(fmt.Sprintf("app %q", name), was, same, slog.LevelInfo)
	}
	for _, name := range slices.Sorted(maps.Keys(m.Apps)) {
		if !m.keep && m.ours(m.Apps[name].Origin) && m.file.apps[name] == nil {
			m.deleteApp(name)
			m.report.info("app %q is no longer in the file and is removed", name)
		}
	}
}

// dropBrokenLinks leaves the links of the file's own apps alone: what is wrong
// with those is wrong with the file, and finish says so.
func (m *merge) dropBrokenLinks() {
	broken := func(app *serving.App, name string) bool {
		if m.ours(app.Origin) {
			return false
		}
		model := m.Models[name]
		if model == nil {
			return true
		}
		v := model.Versions[model.Current]
		return v != nil && v.InputType != app.InputType
	}
	for _, l := range m.dropLinks(broken) {
		m.report.warn("app %q no longer links model %q, which the file has removed or given another input type", l.App, l.Model)
	}
}

func describe(id serving.ModelID) string {
	return fmt.Sprintf("version %q of model %q", id.Version, id.Model)
}
