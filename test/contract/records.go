package contract

import (
	"context"
	"encoding/json"
	"errors"
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/topsail-serving/topsail/serving"
)

// RecordStore is the seam of the records of answers, which several gateways share.
type RecordStore interface {
	// PutRecords keeps records until they expire, or until newer ones take their room:
	// an app has MaxRecords, and a query's has the place of its id modulo that. Each is
	// cut to what Bounded says, and what cannot be kept does not keep out the others.
	PutRecords(ctx context.Context, records []*serving.Record) error
	// RecordOf is the record of a query, or an error that is ErrNoRecord. What is
	// returned is the caller's own.
	RecordOf(ctx context.Context, app string, queryID int64) (*serving.Record, error)
	// NewestRecord is the record that was put last for a user's input in a context, or
	// an error that is ErrNoRecord.
	NewestRecord(ctx context.Context, app, user, context string, input serving.InputHash) (*serving.Record, error)
	// MarkLearned has the record of a query say from now on that it is Learned, also
	// when the same record is put again. Without a record, it is no error.
	MarkLearned(ctx context.Context, app string, queryID int64) error
}

// Records runs the suite. open makes an empty store, which the test closes at its end:
// another returns it as another gateway has it, which may be the same one.
func Records(t *testing.T, open func(t *testing.T) (another func() RecordStore)) {
	tests := []struct {
		name string
		run  func(s records)
	}{
		{"none", records.none},
		{"every field", records.everyField},
		{"outputs are as they were", records.outputs},
		{"apart", records.apart},
		{"the newest", records.newest},
		{"bounded", records.bounded},
		{"expired", records.expired},
		{"learned", records.learned},
		{"large", records.large},
		{"hostile names", records.hostile},
		{"what is put and returned is the caller's own", records.own},
		{"many at once", records.many},
		{"an ended context", records.endedContext},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			another := open(t)
			test.run(records{t, another(), another})
		})
	}
}

type records struct {
	*testing.T
	store   RecordStore
	another func() RecordStore
}

// record has an input of its own for each id below 256.
func record(app string, query int64) *serving.Record {
	now := time.Now().UTC().Truncate(time.Millisecond)
	return &serving.Record{
		QueryID: query, App: app, InputType: serving.Doubles, InputHash: serving.InputHash{byte(query)},
		At: now, Expires: now.Add(time.Hour), Asked: []serving.RecordedAsk{{ModelID: id("m", "1")}},
		Inner: &serving.RecordedInner{App: "b", QueryID: query + 1},
	}
}

func (s records) put(list ...*serving.Record) {
	s.Helper()
	if err := s.store.PutRecords(s.Context(), list); err != nil {
		s.Fatalf("put: %v", err)
	}
}

// want finds a record by its id, and by its input where it is the newest of it.
func (s records) want(want *serving.Record, newest bool) {
	s.Helper()
	for _, store := range []RecordStore{s.another(), s.store} {
		got, err := store.RecordOf(s.Context(), want.App, want.QueryID)
		s.same(got, err, want)
		got, err = store.NewestRecord(s.Context(), want.App, want.User, want.Context, want.InputHash)
		if newest {
			s.same(got, err, want)
		} else if err == nil && got.QueryID == want.QueryID {
			s.Fatalf("record %d is the newest", got.QueryID)
		}
	}
}

func (s records) same(got *serving.Record, err error, want *serving.Record) {
	s.Helper()
	if err != nil {
		s.Fatalf("record %d: %v", want.QueryID, err)
	}
	if got == want {
		s.Fatal("the record is the one that was put, not a copy")
	}
	if !reflect.DeepEqual(got, want) {
		s.Fatalf("got %+v, want %+v", got, want)
	}
}

func (s records) wantNone(r *serving.Record) {
	s.Helper()
	for _, store := range []RecordStore{s.another(), s.store} {
		if got, err := store.RecordOf(s.Context(), r.App, r.QueryID); !errors.Is(err, serving.ErrNoRecord) || got != nil {
			s.Fatalf("got %+v and error %v, want none of query %d", got, err, r.QueryID)
		}
		if got, err := store.NewestRecord(s.Context(), r.App, r.User, r.Context, r.InputHash); !errors.Is(err, serving.ErrNoRecord) || got != nil {
			s.Fatalf("got %+v and error %v, want none of the input of query %d", got, err, r.QueryID)
		}
	}
}

func (s records) none() {
	s.put()
	s.wantNone(record("a", 1))
	s.wantNone(record("a", 0))
	s.put(record("a", 1))
	s.wantNone(record("a", 2))
	s.wantNone(record("b", 1))
}

func (s records) everyField() {
	r := record("a", 1<<53-1)
	r.User, r.Context, r.Input = "u", "c", []byte{0, 1, 0xff}
	r.Output, r.Learned = json.RawMessage(`[1.0,2.5]`), true
	r.Asked = append(r.Asked, serving.RecordedAsk{ModelID: id("n", "1"), Probability: 1. / 3, Output: json.RawMessage(`"x"`), Shadow: true})
	s.put(r)
	s.want(r, true)
}

// outputs must be the same bytes: they are compared with labels.
func (s records) outputs() {
	for i, text := range []string{`"<b>&\u003c"`, `1.0`, `1e-7`, `null`, `{"b":1,"a":[]}`, `"ü\u2028` + "\u2028" + `"`, `12345678901234567890`} {
		r := record("a", int64(i))
		r.Output = json.RawMessage(text)
		r.Asked[0].Output = json.RawMessage(text)
		s.put(r)
		s.want(r, true)
	}
}

// apart has records that differ in one of what names their input.
func (s records) apart() {
	list := []*serving.Record{record("a", 1), record("a", 2), record("a", 3), record("a", 4), record("b", 1)}
	for _, r := range list {
		r.User, r.Context, r.InputHash = "x", "y", serving.InputHash{1}
	}
	list[1].User, list[2].Context, list[3].InputHash[15] = "y", "x", 1
	s.put(list...)
	for _, r := range list {
		s.want(r, true)
	}
}

func (s records) newest() {
	first, second, third := record("a", 7), record("a", 3), record("a", 5)
	second.InputHash, third.InputHash = first.InputHash, first.InputHash
	s.put(first, second)
	s.want(first, false)
	s.want(second, true)
	s.put(third)
	s.want(second, false)
	s.want(third, true)
}

// bounded puts two records into the same place.
func (s records) bounded() {
	first, second := record("a", 9), record("a", 9+serving.MaxRecords)
	other := record("a", 10)
	second.InputHash = serving.InputHash{200}
	s.put(first, other)
	s.put(second)
	s.wantNone(first)
	s.want(second, true)
	s.want(other, true)
	s.put(first)
	s.wantNone(second)
	s.want(first, true)
}

func (s records) expired() {
	past, never, soon, later := record("a", 1), record("a", 2), record("a", 3), record("a", 4)
	past.Expires, never.Expires = time.Now().Add(-time.Second), time.Time{}
	soon.Expires = time.Now().Add(50 * time.Millisecond)
	s.put(past, never, soon, later)
	s.wantNone(past)
	s.wantNone(never)
	poll := time.NewTicker(5 * time.Millisecond)
	defer poll.Stop()
	for begun := time.Now(); ; <-poll.C {
		if _, err := s.store.RecordOf(s.Context(), "a", soon.QueryID); errors.Is(err, serving.ErrNoRecord) {
			break
		}
		if time.Since(begun) > patience {
			s.Fatal("the record does not expire")
		}
	}
	s.wantNone(soon)
	s.want(later, true)
}

func (s records) learned() {
	r, other, absent := record("a", 1), record("a", 2), record("a", 3)
	s.put(r, other)
	mark := func(r *serving.Record) {
		s.Helper()
		if err := s.another().MarkLearned(s.Context(), r.App, r.QueryID); err != nil {
			s.Fatalf("mark: %v", err)
		}
	}
	mark(absent)
	mark(record("b", 1))
	s.wantNone(absent)
	s.want(r, true)
	mark(r)
	mark(r)
	marked := *r
	marked.Learned = true
	s.want(&marked, true)
	s.want(other, true)
	s.put(r)
	s.want(&marked, true)
	next := record("a", 1+serving.MaxRecords)
	s.put(next)
	mark(r) // which has gone
	s.want(next, true)
}

func (s records) large() {
	r := record("a", 1)
	r.Input = make([]byte, serving.MaxRecord)
	for range 10 {
		r.Asked = append(r.Asked, serving.RecordedAsk{ModelID: id("n", "1"), Output: json.RawMessage(`"` + strings.Repeat("x", serving.MaxRecordedOutput) + `"`)})
	}
	s.put(r)
	slim := *r
	slim.Input = nil
	s.want(&slim, true)

	outputs := record("a", 2)
	outputs.Asked = append(r.Asked, r.Asked...)
	s.put(outputs)
	bare := *outputs
	bare.Asked = append([]serving.RecordedAsk{}, outputs.Asked...)
	for i := range bare.Asked {
		bare.Asked[i].Output = nil
	}
	s.want(&bare, true)

	huge, beside := record("a", 3), record("a", 4)
	huge.User = strings.Repeat("x", serving.MaxRecord)
	if err := s.store.PutRecords(s.Context(), []*serving.Record{huge, beside}); err == nil || !strings.Contains(err.Error(), "query 3") {
		s.Fatalf("got error %v for a record that is too large", err)
	}
	s.wantNone(huge)
	s.want(beside, true)
}

func (s records) hostile() {
	var list []*serving.Record
	for i, name := range hostileNames() {
		app, user, context := record(name, 100), record("b", int64(i)), record("c", int64(i))
		user.User, context.Context = name, name
		user.InputHash, context.InputHash = serving.InputHash{}, serving.InputHash{}
		list = append(list, app, user, context)
	}
	s.put(list...)
	for _, r := range list {
		s.want(r, true)
	}
}

func (s records) own() {
	put := record("a", 1)
	put.Input, put.Output = []byte{1}, json.RawMessage("1")
	want := *put
	want.Input, want.Output, want.Asked = []byte{1}, json.RawMessage("1"), []serving.RecordedAsk{put.Asked[0]}
	s.put(put)
	for range 3 {
		got, err := s.store.RecordOf(s.Context(), "a", 1)
		s.same(got, err, &want)
		got.User, got.Learned, got.Asked[0].Probability = "changed", true, 7
	}
}

// many has several gateways put records, and look for each other's.
func (s records) many() {
	const gateways, each = 4, 500
	var all sync.WaitGroup
	for g := range gateways {
		store := s.another()
		all.Go(func() {
			var list []*serving.Record
			for i := range each {
				list = append(list, record(numbered("app-", i%3), int64(g*each+i)))
			}
			if err := store.PutRecords(s.Context(), list); err != nil {
				s.Errorf("put: %v", err)
			}
		})
	}
	all.Wait()
	for i := range gateways * each {
		app := numbered("app-", i%each%3)
		if got, err := s.store.RecordOf(s.Context(), app, int64(i)); err != nil || got.QueryID != int64(i) || got.App != app {
			s.Fatalf("got %+v and error %v", got, err)
		}
	}
}

func (s records) endedContext() {
	r, late := record("a", 1), record("a", 2)
	s.put(r)
	ctx, cancel := context.WithCancel(s.Context())
	cancel()
	if err := s.store.PutRecords(ctx, []*serving.Record{late}); !errors.Is(err, context.Canceled) {
		s.Errorf("put with error %v", err)
	}
	if got, err := s.store.RecordOf(ctx, "a", 1); !errors.Is(err, context.Canceled) || got != nil {
		s.Errorf("got %v and error %v", got, err)
	}
	if got, err := s.store.NewestRecord(ctx, "a", "", "", r.InputHash); !errors.Is(err, context.Canceled) || got != nil {
		s.Errorf("got %v and error %v", got, err)
	}
	if err := s.store.MarkLearned(ctx, "a", 1); !errors.Is(err, context.Canceled) {
		s.Errorf("marked with error %v", err)
	}
	s.want(r, true)
	s.wantNone(late)
}
