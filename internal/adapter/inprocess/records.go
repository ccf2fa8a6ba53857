package inprocess

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/topsail-serving/topsail/serving"
)

// sweepEvery is how often what has expired is looked for, at the most. Until then it
// takes room, and is not found.
const sweepEvery = 10 * time.Second

// Records keeps the records of answers of this process. It is the twin of those in
// Redis. Its records are copies; the bytes that they point to are shared, and none may be
// may write to them.
type Records struct {
	mu    sync.Mutex // guards the following
	apps  map[string]*appRecords
	swept time.Time
}

// appRecords are the records of an app, by the place of their query.
type appRecords struct {
	records map[int]*serving.Record
	newest  map[answered]int64 // query ids, each of one of the records
}

// answered is what the newest answer is looked for by.
type answered struct {
	user, context string
	input         serving.InputHash
}

// NewRecords has no records.
func NewRecords() *Records { return &Records{apps: map[string]*appRecords{}} }

// PutRecords keeps records, each in the place of its query, until they
// expire. It keeps the others where one is too large, and then fails.
func (r *Records) PutRecords(ctx context.Context, records []*serving.Record) error {
	if err := ctx.Err(); err != nil {
		return context.Cause(ctx)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	now := time.Now()
	r.sweep(now)
	var errs []error
	for _, record := range records {
		bounded, err := record.Bounded()
		if err != nil {
			errs = append(errs, err)
		} else if bounded.Expires.After(now) {
			r.app(record.App).put(clone(bounded))
		}
	}
	return errors.Join(errs...)
}

func (r *Records) app(name string) *appRecords {
	a := r.apps[name]
	if a == nil {
		a = &appRecords{records: map[int]*serving.Record{}, newest: map[answered]int64{}}
		r.apps[name] = a
	}
	return a
}

// RecordOf is the record of a query, or an error that is serving.ErrNoRecord. It is
// the caller's own, but for its bytes.
func (r *Records) RecordOf(ctx context.Context, app string, queryID int64) (*serving.Record, error) {
	return r.find(ctx, app, func(a *appRecords) *serving.Record { return a.find(queryID) })
}

// NewestRecord is the record that was put last for a user's input in a context, or an
// error that is serving.ErrNoRecord.
func (r *Records) NewestRecord(ctx context.Context, app, user, about string, input serving.InputHash) (*serving.Record, error) {
	return r.find(ctx, app, func(a *appRecords) *serving.Record {
		id, there := a.newest[answered{user, about, input}]
		if !there {
			return nil
		}
		return a.find(id)
	})
}

func (r *Records) find(ctx context.Context, app string, find func(*appRecords) *serving.Record) (*serving.Record, error) {
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	a := r.apps[app]
	if a == nil {
		return nil, serving.ErrNoRecord
	}
	record := find(a)
	if record == nil || !record.Expires.After(time.Now()) {
		return nil, serving.ErrNoRecord
	}
	return clone(record), nil
}

// MarkLearned has the record of a query say that it is Learned, if there is one.
func (r *Records) MarkLearned(ctx context.Context, app string, queryID int64) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if a := r.apps[app]; a != nil {
		if record := a.find(queryID); record != nil {
			record.Learned = true
		}
	}
	return nil
}

// sweep forgets what has expired, if that has not been done for a while.
func (r *Records) sweep(now time.Time) {
	if now.Sub(r.swept) < sweepEvery {
		return
	}
	r.swept = now
	for name, a := range r.apps {
		for _, record := range a.records {
			if !record.Expires.After(now) {
				a.remove(record)
			}
		}
		if len(a.records) == 0 {
			delete(r.apps, name)
		}
	}
}

// put takes over a record. The same one put again stays learned.
func (a *appRecords) put(record *serving.Record) {
	if old := a.records[serving.RecordSlot(record.QueryID)]; old != nil {
		record.Learned = record.Learned || old.Learned && old.QueryID == record.QueryID
		a.remove(old)
	}
	a.records[serving.RecordSlot(record.QueryID)] = record
	a.newest[answeredBy(record)] = record.QueryID
}

func (a *appRecords) remove(record *serving.Record) {
	delete(a.records, serving.RecordSlot(record.QueryID))
	if by := answeredBy(record); a.newest[by] == record.QueryID {
		delete(a.newest, by)
	}
}

// find is the record of a query, or nil.
func (a *appRecords) find(queryID int64) *serving.Record {
	record := a.records[serving.RecordSlot(queryID)]
	if record == nil || record.QueryID != queryID {
		return nil
	}
	return record
}

func answeredBy(r *serving.Record) answered { return answered{r.User, r.Context, r.InputHash} }

// clone is a copy whose fields can be changed; the bytes that it points to are shared.
func clone(record *serving.Record) *serving.Record {
	c := *record
	c.Asked = slices.Clone(record.Asked)
	return &c
}
