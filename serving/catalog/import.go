package catalog

import "github.com/topsail-serving/topsail/serving"

// Import brings apps and versions in as a configuration file does; see Merge.
type Import struct {
	Apps     []serving.App
	Versions []serving.Version
	Current  map[string]string
	Keep     bool    // what an earlier file defined and this one does not stays
	Replace  bool    // versions may be redefined under their names
	Report   *Report // gets what was done; may be nil
}

func (c Import) apply(d *draft) error {
	next, report, err := merged(d.base, d.by, c, false)
	if err != nil {
		return err
	}
	if c.Report != nil {
		*c.Report = report
	}
	d.Catalog, d.changed = next.Catalog, next.changed
	return nil
}
