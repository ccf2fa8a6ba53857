package records

import (
	"context"
	"testing"
	"time"

	"github.com/topsail-serving/topsail/serving"
)

// mapped is a catalog with the job's stream, whose map changes when a test says so.
type mapped chan map[string]string

func (m mapped) Watch(ctx context.Context, fn func(*serving.Catalog)) error {
	for {
		select {
		case apps := <-m:
			fn(&serving.Catalog{Streams: map[string]*serving.Stream{"job": {Name: "job", Apps: apps}}})
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// TestTheMapIsLive: what operators say records may name is over the configuration, at once.
func TestTheMapIsLive(t *testing.T) {
	bubble(t, func(t *testing.T) {
		broker, catalog := newMemory("in"), mapped(make(chan map[string]string))
		named := func(id, name string) serving.StreamMessage {
			m := jsonRecord(id, 1)
			m.Headers = append(m.Headers, serving.StreamHeader{Name: HeaderApp, Value: []byte(name)})
			return m
		}
		_, _, stop := run(t, broker, newScorer(double), func(c *Config) {
			c.Catalog, c.Apps = catalog, map[string]string{"red": "double", "white": "nobody"}
		})
		catalog <- nil
		broker.write(named("a", "red"), named("b", "white"), named("c", "rose"))
		settled(time.Minute)
		if got := results(t, broker, "out"); len(got) != 1 || string(got["a"].Output) != "2" {
			t.Errorf("results %v", got)
		}
		catalog <- map[string]string{"white": "double", "rose": "double", "red": "nobody"}
		settled(time.Minute)
		broker.write(named("d", "red"), named("e", "white"), named("f", "rose"))
		settled(time.Minute)
		catalog <- nil
		settled(time.Minute)
		broker.write(named("g", "red"), named("h", "rose"))
		settled(time.Minute)
		got := results(t, broker, "out")
		for id, want := range map[string]bool{"a": true, "b": false, "c": false, "d": false, "e": true, "f": true, "g": true, "h": false} {
			if _, is := got[id]; is != want {
				t.Errorf("there is a result of %s: %v", id, is)
			}
		}
		stop()
	})
}

// announced is a catalog with the job's stream, which changes when a test says so.
type announced chan *serving.Suspension

func (a announced) Watch(ctx context.Context, fn func(*serving.Catalog)) error {
	for {
		select {
		case s := <-a:
			fn(&serving.Catalog{Streams: map[string]*serving.Stream{"job": {Name: "job", Suspension: s}}})
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// TestSuspended takes no records until the stream is resumed, and then all of them, once.
func TestSuspended(t *testing.T) {
	bubble(t, func(t *testing.T) {
		broker, catalog := newMemory("in"), announced(make(chan *serving.Suspension))
		broker.write(jsonRecord("a", 1))
		j, _, stop := run(t, broker, newScorer(double), func(c *Config) { c.Catalog = catalog })
		settled(time.Minute)
		if got := results(t, broker, "out"); len(got) != 0 {
			t.Errorf("results %v before it is known whether it is suspended", got)
		}
		catalog <- nil
		settled(time.Minute)
		catalog <- &serving.Suspension{Reason: "bad data"}
		settled(time.Minute)
		broker.write(jsonRecord("b", 2))
		settled(time.Hour)
		if s := j.Status(); len(results(t, broker, "out")) != 1 || s.Suspended == nil || s.Suspended.Reason != "bad data" || s.InFlight != 0 || j.Ready() != nil {
			t.Errorf("%v, %+v, %v", results(t, broker, "out"), s, j.Ready())
		}
		catalog <- nil
		settled(time.Minute)
		if got := results(t, broker, "out"); len(got) != 2 || j.Status().Suspended != nil || string(got["b"].Output) != "4" {
			t.Errorf("results %v", got)
		}
		stop()
	})
}

// TestSuspendedWhileRecordsWait asks nothing until the stream is resumed.
func TestSuspendedWhileRecordsWait(t *testing.T) {
	bubble(t, func(t *testing.T) {
		broker, catalog := newMemory("in"), announced(make(chan *serving.Suspension))
		f := &fleet{takes: time.Millisecond, objective: 10 * time.Millisecond, outputs: map[string]time.Time{}}
		broker.write(jsonRecord("a", 1), jsonRecord("b", 2))
		_, _, stop := run(t, broker, f, func(c *Config) { c.Catalog = catalog })
		catalog <- nil
		settled(time.Minute)
		catalog <- &serving.Suspension{Reason: "the model is down"}
		settled(2 * time.Second)
		before := f.asked
		settled(time.Hour)
		if f.asked != before || before == 0 {
			t.Errorf("asked %d times, and %d times before it was suspended", f.asked, before)
		}
		f.free = make([]time.Time, 1)
		catalog <- nil
		settled(time.Minute)
		if got := results(t, broker, "out"); len(got) != 2 || got["a"].Default {
			t.Errorf("results %v", got)
		}
		stop()
	})
}
