package redisstore

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/topsail-serving/topsail/serving"
)

const (
	// recordBatch is how many records go to Redis in one conversation.
	recordBatch = 256
	// learnedFor is how long it is known that a query had its feedback: longer than any
	// record lives.
	learnedFor = 8 * 24 * time.Hour
)

// PutRecords keeps records until they expire, or until newer ones take their places.
// It keeps the others where one is too large, and then fails. After another error some
// may have been kept.
func (s *Store) PutRecords(ctx context.Context, records []*serving.Record) error {
	var errs []error
	for batch := range slices.Chunk(records, recordBatch) {
		err := s.call(ctx, func(ctx context.Context) error {
			var refused []error
			_, err := s.client.Pipelined(ctx, func(p redis.Pipeliner) error {
				for _, r := range batch {
					refused = append(refused, s.putRecord(ctx, p, r))
				}
				return nil
			})
			errs = append(errs, refused...)
			return err
		})
		if err != nil {
			return fmt.Errorf("keep %d records: %w", len(records), errors.Join(append(errs, err)...))
		}
	}
	return errors.Join(errs...)
}

// putRecord has a pipeline write a record, and that it is the newest of its input.
func (s *Store) putRecord(ctx context.Context, p redis.Pipeliner, r *serving.Record) error {
	left := time.Until(r.Expires).Truncate(time.Millisecond)
	if left <= 0 {
		return nil
	}
	text, err := encodeRecord(r)
	if err != nil {
		return err
	}
	by := answeredBy(r.User, r.Context, r.InputHash)
	p.Set(ctx, s.keys.record(r.App, serving.RecordSlot(r.QueryID)), text, left)
	p.Set(ctx, s.keys.newest(r.App, by.slot()), by.text()+" "+strconv.FormatInt(r.QueryID, 10), left)
	return nil
}

// RecordOf is the record of a query, or an error that is serving.ErrNoRecord.
func (s *Store) RecordOf(ctx context.Context, app string, queryID int64) (*serving.Record, error) {
	slot := serving.RecordSlot(queryID)
	var found []any
	err := s.call(ctx, func(ctx context.Context) (err error) {
		found, err = s.client.MGet(ctx, s.keys.record(app, slot), s.keys.learned(app, slot)).Result()
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("read the record of query %d: %w", queryID, err)
	}
	text, there := found[0].(string)
	if !there {
		return nil, serving.ErrNoRecord
	}
	r, err := decodeRecord(text)
	if err != nil || r.QueryID != queryID || r.App != app {
		return nil, serving.ErrNoRecord // another one has the place; or what is there is no record
	}
	r.Learned = r.Learned || found[1] == strconv.FormatInt(queryID, 10)
	return r, nil
}

// NewestRecord is the record that was put last for a user's input in a context, or an
// error that is serving.ErrNoRecord.
func (s *Store) NewestRecord(ctx context.Context, app, user, about string, input serving.InputHash) (*serving.Record, error) {
	by := answeredBy(user, about, input)
	var text string
	err := s.call(ctx, func(ctx context.Context) (err error) {
		text, err = s.client.Get(ctx, s.keys.newest(app, by.slot())).Result()
		if errors.Is(err, redis.Nil) {
			return nil
		}
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("find the newest record: %w", err)
	}
	digits, same := bytes.CutPrefix([]byte(text), []byte(by.text()+" "))
	queryID, err := strconv.ParseInt(string(digits), 10, 64)
	if !same || err != nil {
		return nil, serving.ErrNoRecord
	}
	r, err := s.RecordOf(ctx, app, queryID)
	if err == nil && answeredBy(r.User, r.Context, r.InputHash) != by {
		return nil, serving.ErrNoRecord
	}
	return r, err
}

// MarkLearned has the record of a query say that it is Learned, also when it is put
// again. Without a record it is no error.
func (s *Store) MarkLearned(ctx context.Context, app string, queryID int64) error {
	err := s.call(ctx, func(ctx context.Context) error {
		return s.client.Set(ctx, s.keys.learned(app, serving.RecordSlot(queryID)), queryID, learnedFor).Err()
	})
	if err != nil {
		return fmt.Errorf("mark query %d as learned: %w", queryID, err)
	}
	return nil
}

// answered is what the newest answer is looked for by: a hash of user, context and
// input.
type answered [16]byte

func answeredBy(user, about string, input serving.InputHash) (by answered) {
	sum := sha256.Sum256(fmt.Appendf(nil, "%q %q %s", user, about, input[:]))
	copy(by[:], sum[:])
	return by
}

// slot is the place among as many as an app has records.
func (a answered) slot() int { return int(binary.BigEndian.Uint64(a[:]) % serving.MaxRecords) }

func (a answered) text() string { return hex.EncodeToString(a[:]) }

// storedRecord is a record as it is stored: names may be any bytes, which texts in
// JSON may not.
type storedRecord struct {
	serving.Record
	User    []byte `json:"user,omitempty"`
	Context []byte `json:"context,omitempty"`
	App     []byte `json:"app"`
}

func encodeRecord(r *serving.Record) ([]byte, error) {
	bounded, err := r.Bounded()
	if err != nil {
		return nil, err
	}
	var b bytes.Buffer
	encoder := json.NewEncoder(&b)
	encoder.SetEscapeHTML(false) // outputs have to stay what they are, to be compared
	if err := encoder.Encode(storedRecord{*bounded, []byte(r.User), []byte(r.Context), []byte(r.App)}); err != nil {
		return nil, fmt.Errorf("encode the record of query %d: %w", r.QueryID, err)
	}
	return b.Bytes(), nil
}

func decodeRecord(text string) (*serving.Record, error) {
	var stored storedRecord
	if err := json.Unmarshal([]byte(text), &stored); err != nil {
		return nil, err
	}
	r := stored.Record
	r.User, r.Context, r.App = string(stored.User), string(stored.Context), string(stored.App)
	return &r, nil
}
