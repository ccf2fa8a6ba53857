package manage

import (
	"github.com/topsail-serving/topsail/serving"
	"github.com/topsail-serving/topsail/web/api"
)

// Redefined shows a ready replica as draining where its version has another definition by now: gateways no longer ask it.
func Redefined(r *api.Replica, runs serving.Definition, cat *serving.Catalog) {
	if v := cat.Version(runs.ModelID); v != nil && r.State == "ready" && !runs.Defines(v) {
		r.State, r.Reason = "draining", "it runs the version as it was before it was redefined"
	}
}
