package consulregistry

import (
	"slices"
	"strings"
	"time"

	"github.com/topsail-serving/topsail/serving"
)

// confirmAfter is how long after an answer that lacks much the next one may
// confirm it.
const confirmAfter = time.Second

// membership is the list that is held for true, against answers that lack some of it.
// The zero value with a hold knows nothing.
type membership struct {
	hold time.Duration // how long vanished instances stay after Consul was unavailable

	list    []serving.Endpoint // by replica
	known   bool               // there was an answer
	suspect bool               // Consul was unavailable, or went back, since an answer was trusted
	since   time.Time          // when the first answer came that is not trusted; zero: none
}

// suspectAll makes every loss doubtful until an answer is whole again.
func (b *membership) suspectAll() { b.suspect = true }

// pending says whether the last answer is not trusted yet.
func (b *membership) pending() bool { return !b.since.IsZero() }

// update takes an answer, sorted by replica, and changes the list.
func (b *membership) update(answer []serving.Endpoint, consistent bool, now time.Time) {
	missing := b.missing(answer)
	doubtful := 2*len(answer) < len(b.list) || b.suspect && len(missing) > 0
	if !doubtful || b.confirmed(consistent, now) {
		*b = membership{hold: b.hold, list: answer, known: true}
		return
	}
	if b.since.IsZero() {
		b.since = now
	}
	b.list = append(slices.Clone(answer), missing...)
	slices.SortFunc(b.list, byReplica)
}

func (b *membership) confirmed(consistent bool, now time.Time) bool {
	wait := confirmAfter
	if b.suspect {
		wait = b.hold
	}
	return consistent && b.pending() && now.Sub(b.since) >= wait
}

// missing are the replicas that the answer lacks.
func (b *membership) missing(answer []serving.Endpoint) []serving.Endpoint {
	var missing []serving.Endpoint
	for _, e := range b.list {
		if _, there := slices.BinarySearchFunc(answer, e, byReplica); !there {
			missing = append(missing, e)
		}
	}
	return missing
}

func byReplica(a, b serving.Endpoint) int { return strings.Compare(a.Replica, b.Replica) }
