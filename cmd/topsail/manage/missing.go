package manage

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/topsail-serving/topsail/serving"
	"github.com/topsail-serving/topsail/web/artifact"
)

// Missing says which bundles of versions are not stored, or nil: replicas that have them
// unpacked go on, and no other can start.
func Missing(ctx context.Context, cat *serving.Catalog, bundles *artifact.Store) error {
	stored, err := bundles.Stored(ctx)
	if err != nil {
		return nil // the store itself is reported elsewhere
	}
	there := map[string]bool{}
	for _, b := range stored {
		there[b.Digest] = true
	}
	missing := map[string][]string{}
	for _, m := range cat.Models {
		for _, v := range m.Versions {
			if c := v.Container; c.Bundle != "" && c.BundleURL == "" && !there[c.Bundle] {
				missing[c.Bundle] = append(missing[c.Bundle], v.ModelID.String())
			}
		}
	}
	if len(missing) == 0 {
		return nil
	}
	var list []string
	for _, digest := range slices.Sorted(maps.Keys(missing)) {
		slices.Sort(missing[digest])
		list = append(list, fmt.Sprintf("%s of %s", digest, strings.Join(missing[digest], ", ")))
	}
	return fmt.Errorf("bundles are missing from the store, so their versions cannot start on another node: %s; upload them again (topsail artifact push)", strings.Join(list, "; "))
}
