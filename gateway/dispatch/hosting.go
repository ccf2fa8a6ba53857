package dispatch

import (
	"context"
	"encoding/json"
	"sync/atomic"
	"time"

	"github.com/topsail-serving/topsail/rpc"
	"github.com/topsail-serving/topsail/serving"
)

const (
	// loadEvery is how often at most a version without a replica is asked to be loaded:
	// LOAD is soon answered, or lost.
	loadEvery = 100 * time.Millisecond
	// spreadEvery is how often at most one more replica is asked to hold a version.
	spreadEvery = time.Second
)

// hosting is of a version that replicas of a host hold.
type hosting struct {
	host    serving.Definition // zero: it is not there
	next    serving.Definition // of the model's, where host serves and another one is current; else zero
	current serving.ModelID    // of the model, to be woken
	load    rpc.Load
}

// hostingOf is how a version is loaded as one of its definitions; nil for one with replicas of its
// own.
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
		Bundle: v.Container.Bundle, URL: v.Container.BundleURL, Batch: batch, Signature: []byte(v.Signature.JSON()),
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

// HostOf is what demand is counted for: the host of a version that has one.
func HostOf(cat *serving.Catalog, v *serving.Version) serving.ModelID {
	if hosts := cat.Hosts(v); len(hosts) > 0 {
		return hosts[0]
	}
	return v.ModelID
}

// hostedModel is the state of a version that a host holds.
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
func (g *hostedModel) inherit(older *Version) {
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
func (v *Version) load(now time.Time) bool {
	h := v.hostedModel.hosting.Load()
	if h == nil {
		return false
	}
	if _, at, _ := v.d.table.Refusals(h.host, v.Definition, now); !at.IsZero() {
		v.hostedModel.refused(at)
	}
	if !due(&v.hostedModel.asked, loadEvery, now) {
		return v.Hosted()
	}
	return v.d.table.Load(h.host, h.load, false, now)
}

// spread has one more replica hold the version: those that do are short of capacity.
func (v *Version) spread(now time.Time) {
	if h := v.hostedModel.hosting.Load(); h != nil && due(&v.hostedModel.spread, spreadEvery, now) {
		v.d.table.Load(h.host, h.load, true, now)
	}
}

// demandReplica has a replica started, or of a version that a host holds, loaded.
func (v *Version) demandReplica(ctx context.Context, waker Waker) error {
	h := v.hostedModel.hosting.Load()
	switch {
	case h == nil:
		return waker.Wake(ctx, v.ModelID)
	case v.load(time.Now()) || h.current == (serving.ModelID{}):
		return nil
	}
	return waker.Wake(ctx, h.current)
}

// demandEvery is how often a version demands a replica while it has none.
func (v *Version) demandEvery() time.Duration {
	if v.Hosted() {
		return loadEvery
	}
	return wakeEvery
}

// Ready says whether the version has a replica, or can have one at once.
func (v *Version) Ready() bool {
	h := v.hostedModel.hosting.Load()
	switch {
	case v.Group().Len() > 0:
		if h != nil {
			v.hostedModel.loaded()
		}
		return true
	case h == nil || !v.hostedModel.proven.Load():
		return false
	}
	return v.Hosted() && v.refused() == nil
}

// Hosted says whether the version is one that a host holds, and that is there.
func (v *Version) Hosted() bool {
	h := v.hostedModel.hosting.Load()
	return h != nil && v.d.table.Group(h.host).Len() > 0
}

// passedOn says whether the host has no replica any more, and its next version has.
func (v *Version) passedOn() bool {
	h := v.hostedModel.hosting.Load()
	return h != nil && v.d.table.Group(h.host).Len() == 0 && v.d.table.Group(h.next).Len() > 0
}

// refused is why no replica can hold the version, as long as that counts; nil: one does, or
// may be able to.
func (v *Version) refused() *serving.Failure {
	h := v.hostedModel.hosting.Load()
	if h == nil || v.Group().Len() > 0 {
		return nil
	}
	why, _, all := v.d.table.Refusals(h.host, v.Definition, time.Now())
	if !all {
		return nil
	}
	return &serving.Failure{Cause: serving.ContainerError, Message: "the host cannot load the model: " + why}
}

// giveUp ends what is held with a failure.
func (v *Version) giveUp(why *serving.Failure) {
	v.mu.Lock()
	v.asked = false
	calls := v.queued.all()
	for _, c := range calls {
		v.drop(c)
	}
	v.mu.Unlock()
	for _, c := range calls {
		c.Flight.Land(nil, why)
	}
}
