package catalog

import (
	"errors"
	"fmt"

	"github.com/topsail-serving/topsail/serving"
)

// file is a checked configuration file; its objects are ready for a catalog.
type file struct {
	apps     map[string]*serving.App
	versions map[serving.ModelID]*serving.Version
	last     map[string]string // the last listed version of each model
	current  map[string]string
}

func readFile(apps []serving.App, versions []serving.Version, current map[string]string) (*file, error) {
	f := &file{
		apps:     make(map[string]*serving.App, len(apps)),
		versions: make(map[serving.ModelID]*serving.Version, len(versions)),
		last:     make(map[string]string),
		current:  current,
	}
	var errs []error
	for _, a := range apps {
		own, err := ownApp(a, serving.FromFile)
		if f.apps[a.Name] != nil {
			err = errors.Join(err, fmt.Errorf("app %q is defined twice", a.Name))
		}
		errs = append(errs, err)
		f.apps[a.Name] = own
	}
	for _, v := range versions {
		own, err := ownVersion(v, serving.FromFile)
		if f.versions[v.ModelID] != nil {
			err = errors.Join(err, fmt.Errorf("version %q of model %q is defined twice", v.Version, v.Model))
		}
		errs = append(errs, err)
		f.versions[v.ModelID] = own
		f.last[v.Model] = v.Version
	}
	return f, errors.Join(errs...)
}
