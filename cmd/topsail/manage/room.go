package manage

import (
	"context"
	"fmt"

	"github.com/topsail-serving/topsail/internal/check"
	"github.com/topsail-serving/topsail/internal/obs"
	"github.com/topsail-serving/topsail/serving"
	"github.com/topsail-serving/topsail/web/artifact"
)

// nearlyFull is the share of its space from which on the bundle store is reported.
const nearlyFull = 0.9

// CheckRoom says how full the store of bundles is, and what it lacks.
func CheckRoom(bundles *artifact.Store, catalog func() *serving.Catalog) check.Check {
	return func(ctx context.Context) []check.Finding {
		bytes, n, err := bundles.Used(ctx)
		if err != nil {
			return []check.Finding{check.Broken(ctx, "bundle store", err, "repair the store that web.bundles names; until then bundles can be neither deployed nor fetched")}
		}
		all := []check.Finding{judgeRoom(bytes, bundles.MaxTotal, n, bundles.Full())}
		for _, err := range []error{bundles.Damaged(), Missing(ctx, catalog(), bundles)} {
			if err != nil {
				all = append(all, check.Finding{Name: "bundles", State: check.Failed, Detail: err.Error(), Next: "upload them again (`topsail artifact push`)"})
			}
		}
		return all
	}
}

func judgeRoom(bytes, most int64, n int, full error) check.Finding {
	const next = "delete bundles that no version uses (`topsail artifact delete`), raise web.max_bundles_bytes, or keep them elsewhere (web.bundles)"
	f := check.Good("bundle store", "%d bundles, %.1f MiB of %.1f MiB", n, mebibytes(bytes), mebibytes(most))
	switch {
	case full != nil || bytes >= most:
		f.State, f.Next = check.Failed, next
		f.Detail = "it is full and accepts no bundles: " + f.Detail
		if full != nil {
			f.Detail += fmt.Sprintf("; the last upload: %v", full)
		}
	case float64(bytes) > nearlyFull*float64(most):
		f.State, f.Next = check.Warn, next
	}
	return f
}

// RoomMetrics shows the same.
func RoomMetrics(metrics *obs.Registry, bundles *artifact.Store) {
	metrics.GaugeFunc("topsail_bundles_full", "1 from when an upload of a bundle fails for lack of space, until one succeeds or a bundle is deleted.", func() float64 {
		if bundles.Full() != nil {
			return 1
		}
		return 0
	})
}

func mebibytes(n int64) float64 { return float64(n) / (1 << 20) }
