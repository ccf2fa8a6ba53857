package catalog

import (
	"fmt"
	"reflect"

	"github.com/topsail-serving/topsail/serving"
)

// PutStream announces a stream, or its present definition. What operators said of it stays.
type PutStream struct{ Stream serving.Stream }

func (c PutStream) apply(d *draft) error {
	s := c.Stream
	s.Suspension, s.Apps = nil, nil
	old := d.Streams[s.Name]
	if old != nil {
		s.Suspension, s.Apps = old.Suspension, old.Apps
	}
	if old == nil && len(d.Streams) >= serving.MaxStreams {
		return invalid(fmt.Errorf("there are %d streams, and no more are allowed; delete some", len(d.Streams)))
	}
	return d.putStream(s)
}

// DeleteStream forgets a stream that no process serves any more. One that is suspended has
// to be resumed first: what serves it announces it again.
type DeleteStream struct{ Name string }

func (c DeleteStream) apply(d *draft) error {
	s := d.Streams[c.Name]
	switch {
	case s == nil:
		return streamNotFound(c.Name)
	case s.Suspension != nil:
		return invalid(fmt.Errorf("stream %q is suspended: resume it first", c.Name))
	}
	delete(d.Streams, c.Name)
	d.changed = true
	return nil
}

// SuspendStream has a stream take no records. One that is suspended already keeps since when.
type SuspendStream struct {
	Name       string
	Suspension serving.Suspension
}

func (c SuspendStream) apply(d *draft) error {
	if d.Streams[c.Name] == nil {
		return streamNotFound(c.Name)
	}
	s, by := *d.Streams[c.Name], c.Suspension
	if s.Suspension != nil {
		by.Since = s.Suspension.Since
		if by.Reason == s.Suspension.Reason {
			return nil
		}
	}
	s.Suspension = &by
	return d.putStream(s)
}

// ResumeStream has a stream go on from where it was.
type ResumeStream struct{ Name string }

func (c ResumeStream) apply(d *draft) error {
	if d.Streams[c.Name] == nil {
		return streamNotFound(c.Name)
	}
	s := *d.Streams[c.Name]
	s.Suspension = nil
	return d.putStream(s)
}

// MapStream has records of a data stream that name something be predicted by an app, in the place of
// all that was mapped before.
type MapStream struct {
	Name string
	Apps map[string]string
}

func (c MapStream) apply(d *draft) error {
	if d.Streams[c.Name] == nil {
		return streamNotFound(c.Name)
	}
	s := *d.Streams[c.Name]
	s.Apps = c.Apps
	return d.putStream(s)
}

func (d *draft) putStream(s serving.Stream) error {
	if err := s.Check(); err != nil {
		return invalid(err)
	}
	own, err := roundTrip(s)
	if err != nil {
		return err
	}
	if !reflect.DeepEqual(d.Streams[s.Name], own) {
		d.Streams[s.Name] = own
		d.changed = true
	}
	return nil
}

func streamNotFound(name string) error { return fmt.Errorf("stream %q %w", name, ErrNotFound) }
