package dispatch

import (
	"log/slog"
	"testing"
	"time"

	"github.com/topsail-serving/topsail/gateway/cache"
	"github.com/topsail-serving/topsail/gateway/route"
	"github.com/topsail-serving/topsail/internal/obs"
	"github.com/topsail-serving/topsail/serving"
)

// unserved is a version without a replica.
func unserved() *Version {
	d := New(route.NewTable("test", nil, slog.New(slog.DiscardHandler)), obs.NewRegistry())
	id := serving.ModelID{Model: "m", Version: "1"}
	m := &serving.Model{Name: id.Model, Current: id.Version, Versions: map[string]*serving.Version{id.Version: {ModelID: id, InputType: serving.Doubles}}}
	d.Use(d.Versions(&serving.Catalog{Models: map[string]*serving.Model{id.Model: m}}))
	return d.Version(serving.Definition{ModelID: id})
}

// newCall makes a call that is to be answered by then.
func newCall(v *Version, c *cache.Cache, by time.Time) *Call {
	input := serving.Input{Type: serving.Doubles, Data: make([]byte, 8)}
	return &Call{version: v, Flight: c.Alone(make(cache.Waiter, 1)), Input: input, Deadline: by, Respond: by, Extra: v.d.Extra}
}

// A replica that goes in the moment that a question is released leaves it held.
func TestReleasedToNobody(t *testing.T) {
	v := unserved()
	c := newCall(v, cache.New(0), time.Now().Add(time.Minute))
	v.Ask(c, time.Now())
	v.mu.Lock()
	if v.queued.calls != 1 {
		t.Fatal("it is not held")
	}
	v.drop(c)
	v.sent++
	v.mu.Unlock()
	c.resume()
	if v.d.Queued() != 1 || v.sent != 0 {
		t.Errorf("%d are held, and %d are taken to be in flight", v.d.Queued(), v.sent)
	}
	if why := v.Leave(c.Flight, c.Respond); why != NoReplica || v.d.Queued() != 0 || v.d.QueuedBytes() != 0 {
		t.Errorf("given up because of %v; %d held, of %d bytes", why, v.d.Queued(), v.d.QueuedBytes())
	}
}
