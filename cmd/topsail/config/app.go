package config

import (
	"slices"

	"github.com/topsail-serving/topsail/internal/schema"
	"github.com/topsail-serving/topsail/serving"
)

// apps checks every app alone.
func (l *loader) apps() []*serving.App {
	var apps []*serving.App
	seen := map[string]string{} // name -> path
	for i := range l.doc.App {
		if l.reported(element("app", i)) {
			continue // it is not a table
		}
		a, path := &l.doc.App[i], element("app", i)
		a.Origin = serving.FromFile
		l.checked(path, "", a.Check())
		if first, twice := seen[a.Name]; twice {
			l.wrong(path+".name", "app %q is already defined in line %d", a.Name, l.file.line(first))
		} else {
			seen[a.Name] = path
		}
		apps = append(apps, a)
	}
	return apps
}

// links checks that apps link models of the file that take what the app takes.
func (l *loader) links(c *Config) {
	current := map[string]*serving.Version{}
	versions := map[serving.ModelID]bool{}
	for _, v := range c.Versions {
		versions[v.ModelID] = true
		if c.Current[v.Model] == v.Version {
			current[v.Model] = v
		}
	}
	for i, a := range c.Apps {
		for j, name := range a.Models {
			path := element(element("app", i)+".models", j)
			v := current[name]
			switch {
			case v == nil:
				l.wrong(path, "app %q links model %q, which is not in this file%s", a.Name, name, schema.DidYouMean(name, keys(current)))
			case v.InputType != a.InputType && v.InputType != 0 && a.InputType != 0:
				l.wrong(path, "app %q takes %v, and its model %q takes %v", a.Name, a.InputType, name, v.InputType)
			}
		}
		for j, s := range a.Stages {
			if s.App != "" {
				if !slices.ContainsFunc(c.Apps, func(other *serving.App) bool { return other.Name == s.App }) {
					l.wrong(element(element("app", i)+".stages", j)+".app", "app %q: stage %q calls app %q, which is not in this file", a.Name, s.Name, s.App)
				}
				continue
			}
			if current[s.Model] == nil {
				l.wrong(element(element("app", i)+".stages", j)+".model", "app %q: stage %q calls model %q, which is not in this file%s", a.Name, s.Name, s.Model, schema.DidYouMean(s.Model, keys(current)))
			}
		}
		l.policyLinks(element("app", i), a, current, versions)
	}
}
