//go:build servers

package backup

import (
	"context"
	"reflect"
	"testing"

	"pgregory.net/rapid"

	"github.com/topsail-serving/topsail/test/require"
)

// TestWhatWasAcknowledgedComesBack has several change a place at once, apps, versions with real
// bundles, keys, what policies learn from feedback, usage and the audit log, takes a backup at any
// moment while they go on, and restores it into an empty place, into one that is not, and into
// the place itself: in local mode, in a cluster, from one to the other, and from a file of the
// first release.
func TestWhatWasAcknowledgedComesBack(t *testing.T) {
	places := newPlaces(t)
	rapid.Check(t, func(t *rapid.T) {
		require.NoError(t, places.client.FlushAll(context.Background()).Err())
		from := places.open(t, rapid.SampledFrom([]string{disk, inRedis}).Draw(t, "from"), "from")
		to := places.open(t, rapid.SampledFrom([]string{disk, inRedis}).Draw(t, "to"), "to")
		before := from.holds(t) // of the file of format 1

		var archive []byte
		then := map[*author]acknowledged{}
		authors := live(t, from, 3, 8, func(all []*author) {
			for _, w := range all {
				then[w] = w.acknowledged()
			}
			archive = from.take(t, true)
		})
		leased, err := from.LeaseQueryIDs(context.Background())
		require.NoError(t, err)
		check := func(in *place) {
			t.Helper()
			things := in.things(t)
			for _, w := range authors {
				require.NoError(t, w.within(then[w], things))
			}
			require.NoError(t, before.within(in.holds(t)))
		}
		check(from)
		if rapid.Bool().Draw(t, "it is not empty") {
			live(t, to, 3, 4, nil)
		}
		would := to.bring(t, archive, true)
		did := to.bring(t, archive, false)
		if did.Done = false; !reflect.DeepEqual(would, did) {
			t.Fatalf("it would have been %+v, and was %+v", would, did)
		}
		check(to)
		if next, err := to.LeaseQueryIDs(context.Background()); err != nil || next < leased-1 {
			t.Fatalf("the next block of query ids is %d, after %d: %v", next, leased, err)
		}
		if again := to.bring(t, archive, false); again.Changed != 0 {
			t.Fatalf("restored twice, it changes %+v", again.Changes)
		}
		from.bring(t, archive, false)
		check(from)
	})
}
