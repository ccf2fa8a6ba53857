package filestore

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/topsail-serving/topsail/serving"
	"github.com/topsail-serving/topsail/serving/catalog"
)

// Usage has a bucket of its own; a file without it is as good.
const (
	usageBucket   = "usage"
	countsBucket  = "counts"  // by serving.Key: a count in JSON; that of an object stands before those of its stages
	writersBucket = "writers" // by name: the number of the last report and when it came, 8 bytes each
)

// usage is what was counted, within a transaction.
type usage struct{ counts, writers *bucket }

func openUsage(t *tx) (u usage, there bool) {
	root := t.bucket(usageBucket)
	if root == nil {
		return usage{}, false
	}
	u = usage{root.bucket(countsBucket), root.bucket(writersBucket)}
	return u, u.counts != nil && u.writers != nil
}

func makeUsage(t *tx) (u usage, err error) {
	root, err := t.make(usageBucket)
	if err != nil {
		return usage{}, err
	}
	if u.counts, err = root.make(countsBucket); err != nil {
		return usage{}, err
	}
	u.writers, err = root.make(writersBucket)
	return u, err
}

// count is the usage of an object or a stage as it is stored.
type count struct {
	Since    time.Time             `json:"since,omitzero"`     // of an object: when it was registered,
	Revision uint64                `json:"revision,omitempty"` // and as which
	Answers  uint64                `json:"answers,omitempty"`
	Cached   uint64                `json:"cached,omitempty"`
	Failed   uint64                `json:"failed,omitempty"`
	Missed   uint64                `json:"missed,omitempty"`
	Micros   uint64                `json:"micros,omitempty"`
	Least    time.Duration         `json:"least,omitempty"`
	Most     time.Duration         `json:"most,omitempty"`
	Last     *serving.UsageFailure `json:"last,omitempty"`
}

func (c count) usage(key serving.UsageKey) serving.Usage {
	return serving.Usage{
		Key: key, Since: c.Since, Answers: c.Answers, Cached: c.Cached, Failed: c.Failed, Missed: c.Missed,
		Micros: c.Micros, Least: c.Least, Most: c.Most, Last: c.Last,
	}
}

// add is the count with what came since.
func (c count) add(more serving.Usage) count {
	u := c.usage(serving.UsageKey{})
	u.Add(more)
	return count{c.Since, c.Revision, u.Answers, u.Cached, u.Failed, u.Missed, u.Micros, u.Least, u.Most, u.Last}
}

// get finds a count. What is none counts as not there.
func (u usage) get(key string) (c count, there bool) {
	text := u.counts.get([]byte(key))
	return c, text != nil && json.Unmarshal(text, &c) == nil
}

func (u usage) put(key string, c count) error {
	text, err := json.Marshal(c)
	if err != nil {
		return err
	}
	return u.counts.put([]byte(key), text)
}

// forget removes an object with its stages.
func (u usage) forget(object string) error {
	gone := [][]byte{[]byte(object)}
	for key := range u.stages(object) {
		gone = append(gone, []byte(key))
	}
	for _, key := range gone {
		if err := u.counts.delete(key); err != nil {
			return err
		}
	}
	return nil
}

// stages yields the keys of an object's stages with their names, in order.
func (u usage) stages(object string) func(yield func(key, stage string) bool) {
	return func(yield func(key, stage string) bool) {
		prefix := []byte(object + "/")
		c := u.counts.cursor()
		for k, _ := c.seek(prefix); bytes.HasPrefix(k, prefix); k, _ = c.next() {
			if !yield(string(k), string(k[len(prefix):])) {
				return
			}
		}
	}
}

// room says whether one more stage of an object can be counted.
func (u usage) room(object string) bool {
	n := 0
	for range u.stages(object) {
		n++
	}
	return n < serving.MaxUsageStages
}

// followUsage begins and ends usage with what it is of: before docs are written, which
// make a revision.
func followUsage(t *tx, docs []catalog.Document, revision uint64, now time.Time) error {
	for _, doc := range docs {
		object, counted := usageObject(doc)
		if !counted {
			continue
		}
		b := t.bucket(doc.Kind)
		isNew := b == nil || b.get([]byte(doc.Key)) == nil
		if !isNew && doc.JSON != nil {
			continue
		}
		u, err := makeUsage(t)
		if err != nil {
			return err
		}
		if err := u.forget(object.String()); err != nil {
			return err
		}
		if doc.JSON == nil {
			continue
		}
		if err := u.put(object.String(), count{Since: now, Revision: revision}); err != nil {
			return err
		}
	}
	return nil
}

// usageObject is the app or version that a document describes.
func usageObject(doc catalog.Document) (object serving.UsageKey, counted bool) {
	switch doc.Kind {
	case catalog.Apps:
		return serving.UsageKey{App: doc.Key}, true
	case catalog.Versions:
		model, version, _ := strings.Cut(doc.Key, ":")
		return serving.UsageKey{ModelID: serving.ModelID{Model: model, Version: version}}, true
	}
	return serving.UsageKey{}, false
}

// AddUsage takes a report of usage, once however often it comes: where its number is not
// above all that its writer has sent, nothing changes. What it counts of an object that
// is not in the catalog, or that was registered after the revision that the report names,
// is left out.
func (s *Store) AddUsage(ctx context.Context, report serving.UsageReport) error {
	if n := len(report.Counted); n > serving.MaxUsageReport {
		return fmt.Errorf("a report of usage has at most %d counts, and this one has %d", serving.MaxUsageReport, n)
	}
	if err := s.lock(ctx); err != nil {
		return err
	}
	defer s.unlock()
	cat, now := s.Catalog(), now()
	err := s.update(func(t *tx) error {
		u, err := makeUsage(t)
		if err != nil {
			return err
		}
		if taken, err := u.turn(report.Writer, report.Number, now); taken || err != nil {
			return err
		}
		for _, more := range report.Counted {
			if err := u.add(cat, more, report.Revision, now); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("report usage: %w", err)
	}
	return nil
}

// turn notes a report of a writer, unless it was taken already. Writers that have been
// silent for long are forgotten.
func (u usage) turn(writer string, number uint64, now time.Time) (taken bool, err error) {
	known := u.writers.get([]byte(writer))
	last := uint64(0)
	if len(known) == 16 {
		last = binary.BigEndian.Uint64(known)
	}
	if number <= last {
		return true, nil
	}
	if last == 0 { // a new one: there are not more old ones than there were new ones
		if err := u.forgetWriters(now); err != nil {
			return false, err
		}
	}
	value := binary.BigEndian.AppendUint64(nil, number)
	return false, u.writers.put([]byte(writer), binary.BigEndian.AppendUint64(value, uint64(now.Unix())))
}

func (u usage) forgetWriters(now time.Time) error {
	var gone [][]byte
	c := u.writers.cursor()
	for k, v := c.first(); k != nil; k, v = c.next() {
		if len(v) != 16 || now.Sub(time.Unix(int64(binary.BigEndian.Uint64(v[8:])), 0)) > serving.UsageWriters {
			gone = append(gone, bytes.Clone(k))
		}
	}
	for _, k := range gone {
		if err := u.writers.delete(k); err != nil {
			return err
		}
	}
	return nil
}

// add counts what came of an object or a stage.
func (u usage) add(cat *serving.Catalog, more serving.Usage, revision uint64, now time.Time) error {
	if more.Key.App != "" && cat.Apps[more.Key.App] == nil || more.Key.App == "" && cat.Version(more.Key.ModelID) == nil {
		return nil
	}
	name := more.Key.Object().String()
	object, there := u.get(name)
	if !there { // registered by a release that did not count
		object.Since = now
		if err := u.put(name, object); err != nil {
			return err
		}
	}
	if object.Revision > revision {
		return nil
	}
	if more.Key.Stage == "" {
		return u.put(name, object.add(more))
	}
	stage, there := u.get(more.Key.String())
	if !there && !u.room(name) {
		return nil
	}
	return u.put(more.Key.String(), stage.add(more))
}

// UsageOf is what is known of objects, in their order, each followed by its stages,
// sorted. Objects of which nothing is known are left out.
func (s *Store) UsageOf(ctx context.Context, objects []serving.UsageKey) (all []serving.Usage, err error) {
	if ctx.Err() != nil {
		return nil, fmt.Errorf("read usage: %w", context.Cause(ctx))
	}
	err = s.view(func(t *tx) error {
		if u, there := openUsage(t); there {
			for _, object := range objects {
				all = append(all, u.of(object.Object())...)
			}
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("read usage: %w", err)
	}
	return all, nil
}

// of is the usage of an object and its stages.
func (u usage) of(object serving.UsageKey) (all []serving.Usage) {
	whole, there := u.get(object.String())
	if !there {
		return nil
	}
	all = append(all, whole.usage(object))
	for key, stage := range u.stages(object.String()) {
		if c, there := u.get(key); there {
			one := c.usage(object)
			one.Key.Stage, one.Since = stage, whole.Since
			all = append(all, one)
		}
	}
	return all
}

// now is the time as usage keeps it.
func now() time.Time { return time.Now().UTC().Truncate(time.Millisecond) }
