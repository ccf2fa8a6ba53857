package predict

import (
	"context"
	"encoding/json"
	"slices"
	"sync/atomic"
	"time"

	"topsail/rpc"
	"topsail/serving"
)

const (
	// loadEvery is how often at most a version without a replica is asked to be loaded:
	// LOAD is soon answered, or lost.
	loadEvery = 100 * time.Millisecond
	// spreadEvery is how often at most one more replica is asked to hold a version.
	spreadEvery = time.Second
)

// hosting is what a cold-start queue knows of a version that replicas of a host hold.
type hosting struct {
	host    serving.Definition // zero: it is not there
	next    serving.Definition // of the model's, where host serves and another one is current; else zero
	current serving.ModelID    // of the model, to be woken
	load    rpc.Load
}

// hostingOf is how a version is held as one of its definitions; nil for one with replicas
// of its own.
func hostingOf(cat *serving.Catalog, v *serving.Version, as serving.Definition) *hosting {
	if v.HostedBy == "" {
		return nil
	}
	batch, err := json.Marshal(v.Batch)
	if err != nil {
		panic(err) // there is nothing in it that JSON cannot hold
	}
	h := &hosting{load: rpc.Load{
		InputType: v.InputType, InputLength: v.InputLength, Model: v.ModelID, Generation: as.Generation,
		Bundle: v.Container.Bundle, URL: v.Container.BundleURL, Batch: batch,
	}}
	definitions := cat.Definitions(v)
	for i, id := range cat.Hosts(v) {
		host := cat.Version(id).Definition()
		switch {
		case definitions[i] == as:
			h.host = host
		case h.host != (serving.Definition{}):
			h.next = host
		}
		h.current = id
	}
	return h
}

// home is what demand is counted for: the host of a version that has one.
func hostOf(cat *serving.Catalog, v *serving.Version) serving.ModelID {
	if hosts := cat.Hosts(v); len(hosts) > 0 {
		return hosts[0]
	}
	return v.ModelID
}

// hostedModel is a cold-start queue's side of hosting.
type hostedModel struct {
	hosting atomic.Pointer[hosting] // nil: the version has replicas of its own
	proven  atomic.Bool             // it has been loaded once, so that it can be again
	asked   atomic.Int64            // when a replica was asked to hold it, in Unix nanoseconds
	spread  atomic.Int64            // when one more was
}

// loaded notes that a replica holds the version. When that unloads it, another may be
// asked at once.
func (g *hostedModel) loaded() {
	g.proven.Store(true)
	if g.asked.Load() != 0 {
		g.asked.Store(0)
	}
}

// inherit takes over that the bundle can be loaded from what the version was before, if it
// was in a host, too.
func (g *hostedModel) inherit(older *coldQueue) {
	if older == nil || !older.hostedModel.proven.Load() {
		return
	}
	was, is := older.hostedModel.hosting.Load(), g.hosting.Load()
	if was != nil && is != nil && was.load.Bundle == is.load.Bundle {
		g.proven.Store(true)
	}
}

// refused notes when a replica said that it cannot hold the version. If that was the one
// that was asked, the next one may be asked at once.
func (g *hostedModel) refused(at time.Time) {
	if asked := g.asked.Load(); asked != 0 && at.UnixNano() >= asked {
		g.asked.CompareAndSwap(asked, 0)
	}
}

// due says whether at has not been for every, and makes it now if so.
func due(at *atomic.Int64, every time.Duration, now time.Time) bool {
	last := at.Load()
	return now.UnixNano()-last >= int64(every) && at.CompareAndSwap(last, now.UnixNano())
}

// load asks a replica of the host to hold the version, unless one was just asked. It
// says whether there is one that can be asked.
func (b *coldQueue) load(now time.Time) bool {
	h := b.hostedModel.hosting.Load()
	if h == nil {
		return false
	}
	if _, at, _ := b.table.Refusals(h.host, b.Definition, now); !at.IsZero() {
		b.hostedModel.refused(at)
	}
	if !due(&b.hostedModel.asked, loadEvery, now) {
		return b.hosted()
	}
	return b.table.Load(h.host, h.load, false, now)
}

// spread has one more replica hold the version: those that do are short of capacity.
func (b *coldQueue) spread(now time.Time) {
	if h := b.hostedModel.hosting.Load(); h != nil && due(&b.hostedModel.spread, spreadEvery, now) {
		b.table.Load(h.host, h.load, true, now)
	}
}

// rouse has a replica started, or of a version that a host holds, loaded.
func (b *coldQueue) rouse(ctx context.Context, waker Waker) error {
	h := b.hostedModel.hosting.Load()
	switch {
	case h == nil:
		return waker.Wake(ctx, b.ModelID)
	case b.load(time.Now()) || h.current == (serving.ModelID{}):
		return nil
	}
	return waker.Wake(ctx, h.current)
}

// rousedEvery is how often a version without a replica is roused.
func (b *coldQueue) rousedEvery() time.Duration {
	if b.hosted() {
		return loadEvery
	}
	return wakeEvery
}

// ready says whether the version has a replica, or can have one at once.
func (b *coldQueue) ready() bool {
	h := b.hostedModel.hosting.Load()
	switch {
	case b.group().Len() > 0:
		if h != nil {
			b.hostedModel.loaded()
		}
		return true
	case h == nil || !b.hostedModel.proven.Load():
		return false
	}
	return b.hosted() && b.refused() == nil
}

// hosted says whether the version is one that a host holds, and that is there.
func (b *coldQueue) hosted() bool {
	h := b.hostedModel.hosting.Load()
	return h != nil && b.table.Group(h.host).Len() > 0
}

// passedOn says whether the host has no replica any more, and its next version has.
func (b *coldQueue) passedOn() bool {
	h := b.hostedModel.hosting.Load()
	return h != nil && b.table.Group(h.host).Len() == 0 && b.table.Group(h.next).Len() > 0
}

// refused is why no replica can hold the version, as long as that counts; nil: one does, or
// may be able to.
func (b *coldQueue) refused() *serving.Failure {
	h := b.hostedModel.hosting.Load()
	if h == nil || b.group().Len() > 0 {
		return nil
	}
	why, _, all := b.table.Refusals(h.host, b.Definition, time.Now())
	if !all {
		return nil
	}
	return &serving.Failure{Cause: serving.ContainerError, Message: "the host cannot load the model: " + why}
}

// giveUp ends what is held with a failure.
func (b *coldQueue) giveUp(why *serving.Failure) {
	b.mu.Lock()
	b.asked = false
	calls := slices.Clone(b.queued.calls)
	for _, c := range calls {
		b.drop(c)
	}
	b.mu.Unlock()
	for _, c := range calls {
		c.flight.Land(nil, why)
	}
}
