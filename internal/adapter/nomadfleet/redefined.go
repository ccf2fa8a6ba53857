package nomadfleet

import (
	"github.com/topsail-serving/topsail/jobs"
	"github.com/topsail-serving/topsail/serving"
)

// spec is the hash of what makes a replica of a version, and the version that it
// was computed for: they are immutable, and the same pointer means the same one.
type spec struct {
	version *serving.Version
	hash    string
}

// redefined says whether a job was made of its version as that was before: changed in what makes a replica, or anew, so that
// gateways no longer ask the replicas that run.
func (f *Fleet) redefined(d *detail) (anew, changed bool) {
	if f.version == nil {
		return false, false
	}
	v := f.version(d.id)
	f.mu.Lock()
	defer f.mu.Unlock()
	if v == nil {
		delete(f.specs, d.id)
		return false, false
	}
	known := f.specs[d.id]
	if known.version != v {
		hash, err := jobs.Hash(jobs.Spec{Version: v, Settings: f.settings})
		if err != nil {
			return false, false // SetCount says what is wrong with it
		}
		known = spec{v, hash}
		f.specs[d.id] = known
	}
	return d.redefines(v), known.hash != d.spec
}
