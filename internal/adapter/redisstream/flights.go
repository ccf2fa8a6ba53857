package redisstream

import (
	"cmp"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/topsail-serving/topsail/serving"
)

// fromStart reads what is pending from its beginning.
const fromStart = "0"

// flights are the entries that a member has in flight, and what may be pending for it that it does not know.
type flights struct {
	mu      sync.Mutex
	streams map[string]*flight
}

// flight is that of one stream.
type flight struct {
	entries []entry // in the order of their ids
	behind  string  // the entry behind which others may be pending; empty: none are
}

// entry is one that is in flight.
type entry struct {
	id     string
	number entryNumber
	lost   chan struct{}
}

// entryNumber is an id of an entry, as it is compared.
type entryNumber struct{ ms, seq uint64 }

func numberOf(id string) (n entryNumber) {
	ms, seq, _ := strings.Cut(id, "-")
	n.ms, _ = strconv.ParseUint(ms, 10, 64) // Redis makes them
	n.seq, _ = strconv.ParseUint(seq, 10, 64)
	return n
}

func (n entryNumber) compare(o entryNumber) int {
	return cmp.Or(cmp.Compare(n.ms, o.ms), cmp.Compare(n.seq, o.seq))
}

func newFlights() *flights { return &flights{streams: map[string]*flight{}} }

func (f *flights) of(stream string) *flight {
	one := f.streams[stream]
	if one == nil {
		one = &flight{behind: fromStart}
		f.streams[stream] = one
	}
	return one
}

func (f *flight) find(n entryNumber) (int, bool) {
	return slices.BinarySearchFunc(f.entries, n, func(e entry, n entryNumber) int { return e.number.compare(n) })
}

// add takes in records that came, at most most that are not in flight. It returns those, and the last that it did not
// pass over.
func (f *flights) add(records []serving.StreamRecord, most int) (added []serving.StreamRecord, all bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, r := range records {
		one, e := f.of(r.Stream), entry{r.Place, numberOf(r.Place), make(chan struct{})}
		at, is := one.find(e.number)
		if is {
			continue
		}
		if len(added) == most {
			return added, false
		}
		one.entries = slices.Insert(one.entries, at, e)
		r.Lost = e.lost
		added = append(added, r)
	}
	return added, true
}

// behind are the entries of streams behind which others may be pending.
func (f *flights) behind(streams []string) (ids []string, some bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	ids = make([]string, len(streams))
	for i, stream := range streams {
		ids[i] = f.of(stream).behind
		some = some || ids[i] != ""
	}
	return ids, some
}

// seen notes behind which entry of a stream others may be pending.
func (f *flights) seen(stream, behind string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.of(stream).behind = behind
}

// doubt has all that is pending be read again: something may be that is not in flight.
func (f *flights) doubt() {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, one := range f.streams {
		one.behind = fromStart
	}
}

// lose lets go of entries of a stream; without any, of all.
func (f *flights) lose(stream string, ids ...string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	one := f.of(stream)
	if len(ids) == 0 {
		for _, e := range one.entries {
			close(e.lost)
		}
		one.entries, one.behind = nil, fromStart
		return
	}
	for _, id := range ids {
		if at, is := one.find(numberOf(id)); is {
			close(one.entries[at].lost)
			one.entries = slices.Delete(one.entries, at, at+1)
		}
	}
	one.behind = fromStart
}

// loseAll lets go of all entries.
func (f *flights) loseAll() {
	for _, stream := range f.names() {
		f.lose(stream)
	}
}

// names are the streams of which entries are in flight.
func (f *flights) names() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	var names []string
	for _, name := range slices.Sorted(maps.Keys(f.streams)) {
		if len(f.streams[name].entries) > 0 {
			names = append(names, name)
		}
	}
	return names
}

// ids are those in flight of a stream, in order.
func (f *flights) ids(stream string) []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	var ids []string
	for _, e := range f.of(stream).entries {
		ids = append(ids, e.id)
	}
	return ids
}

// done forgets entries that are committed.
func (f *flights) done(stream string, ids []string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	one := f.of(stream)
	for _, id := range ids {
		if at, is := one.find(numberOf(id)); is {
			one.entries = slices.Delete(one.entries, at, at+1)
		}
	}
}

// has says whether an entry is in flight.
func (f *flights) has(stream, id string) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	_, is := f.of(stream).find(numberOf(id))
	return is
}
