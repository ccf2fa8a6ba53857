package serving

import (
	"errors"
	"fmt"
	"maps"
	"slices"
)

// Catalog is one immutable snapshot of everything that is registered.
type Catalog struct {
	Revision uint64 // grows with every change; 0 is the empty catalog
	Apps     map[string]*App
	Models   map[string]*Model
	Keys     map[string]*Key // by id
	Streams  map[string]*Stream
}

// Version finds a model version, or nil.
func (c *Catalog) Version(id ModelID) *Version {
	if m := c.Models[id.Model]; m != nil {
		return m.Versions[id.Version]
	}
	return nil
}

// Check says which references between objects do not hold, or nil: links to
// unknown models, input types that differ, current versions that do not exist.
func (c *Catalog) Check() error {
	var errs []error
	for _, key := range slices.Sorted(maps.Keys(c.Apps)) {
		a := c.Apps[key]
		for _, name := range a.Models {
			errs = append(errs, c.checkLink(a, name))
		}
		errs = append(errs, c.checkCircle(a, a.Name, 0))
	}
	for _, key := range slices.Sorted(maps.Keys(c.Models)) {
		m := c.Models[key]
		if m.Current != "" && m.Versions[m.Current] == nil {
			errs = append(errs, fmt.Errorf("model %q: its current version %q does not exist", m.Name, m.Current))
		}
		errs = append(errs, c.checkHosting(m))
	}
	return errors.Join(errs...)
}

// MaxNested bounds how deep apps ask apps.
const MaxNested = 8

// checkCircle says whether an app asks another one that comes back to it, however many are in between.
func (c *Catalog) checkCircle(a *App, at string, depth int) error {
	app := c.Apps[at]
	if app == nil {
		return nil
	}
	for _, name := range app.AskedApps() {
		switch {
		case name == a.Name:
			return fmt.Errorf("app %q calls itself by way of app %q", a.Name, at)
		case depth == MaxNested:
			return fmt.Errorf("app %q calls app %q, which is more than %d apps deep", a.Name, name, MaxNested)
		}
		if err := c.checkCircle(a, name, depth+1); err != nil {
			return err
		}
	}
	return nil
}

func (c *Catalog) checkLink(a *App, name string) error {
	m := c.Models[name]
	if m == nil {
		return fmt.Errorf("app %q links model %q, which does not exist", a.Name, name)
	}
	v := m.Versions[m.Current]
	if v != nil && v.Host != nil {
		return fmt.Errorf("app %q links model %q, which is a host and answers no queries: link the models that it hosts", a.Name, name)
	}
	if v != nil && v.InputType != a.InputType {
		return fmt.Errorf("app %q takes %v, and its model %q takes %v", a.Name, a.InputType, name, v.InputType)
	}
	if v != nil {
		if err := a.Signature.Accepts(v.Signature); err != nil {
			return fmt.Errorf("app %q and its model %q differ in their signatures: %w", a.Name, name, err)
		}
		if err := a.CheckOutputs(v); err != nil {
			return fmt.Errorf("app %q: %w", a.Name, err)
		}
	}
	return nil
}
