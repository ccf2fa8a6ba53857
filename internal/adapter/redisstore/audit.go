package redisstore

import (
	"context"
	"crypto/rand"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/topsail-serving/topsail/internal/adapter/stored"
	"github.com/topsail-serving/topsail/serving"
	"github.com/topsail-serving/topsail/serving/catalog"
)

// audit is the texts of the entries of a change, none where it has no author.
func audit(by serving.Author, from, to *serving.Catalog) ([]any, error) {
	if by == (serving.Author{}) {
		return nil, nil
	}
	entries, err := catalog.Audit(by, from, to, time.Now())
	if err != nil {
		return nil, err
	}
	texts := make([]any, 0, len(entries))
	for _, e := range entries {
		text, err := stored.EncodeEntry(e)
		if err != nil {
			return nil, err
		}
		texts = append(texts, text)
	}
	return texts, nil
}

// AddAudit adds an entry to the audit log, and gives it an ID. The oldest entries go.
// Of one that is too large, the objects before and after are not kept. When it fails,
// the entry may have been added.
func (s *Store) AddAudit(ctx context.Context, entry serving.AuditEntry) error {
	text, err := stored.EncodeEntry(entry)
	if err != nil {
		return fmt.Errorf("add to the audit log: %w", err)
	}
	if _, err := s.run(ctx, s.scripts.audit, []string{s.keys.audit}, keptEntries, rand.Text(), text); err != nil {
		return fmt.Errorf("add to the audit log: %w", err)
	}
	return nil
}

// entryPage is how many entries are read at once.
const entryPage = 200

// AuditLog lists entries, the newest first. It fails with catalog.ErrInvalid where
// query.Before is no ID.
func (s *Store) AuditLog(ctx context.Context, query serving.AuditQuery) ([]serving.AuditEntry, error) {
	before, err := streamBefore(query.Before)
	if err != nil {
		return nil, err
	}
	var found []serving.AuditEntry
	wanted := stored.NewFilter(query)
	for len(found) < query.Limit {
		page, err := s.entriesBefore(ctx, before)
		if err != nil {
			return nil, fmt.Errorf("read the audit log: %w", err)
		}
		for _, message := range page {
			text, _ := message.Values["entry"].(string)
			if e, ok := wanted.Decode(entryID(message.ID), []byte(text)); ok && len(found) < query.Limit {
				found = append(found, e)
			}
		}
		if len(page) < entryPage {
			break
		}
		before = "(" + page[len(page)-1].ID
	}
	return found, nil
}

func (s *Store) entriesBefore(ctx context.Context, before string) (page []redis.XMessage, err error) {
	err = s.call(ctx, func(ctx context.Context) error {
		page, err = s.client.XRevRangeN(ctx, s.keys.audit, before, "-", entryPage).Result()
		return err
	})
	return page, err
}

// entryIDFormat has the ID of an entry in the stream, MILLISECONDS-NUMBER, with as many digits for
// each of the two, so that IDs are in the order of time.
const entryIDFormat = "%015d-%010d"

func entryID(stream string) string {
	ms, n, _ := parseStreamID(stream) // it is Redis' own
	return fmt.Sprintf(entryIDFormat, ms, n)
}

// streamBefore is where to begin to read, downwards; "" is the newest entry.
func streamBefore(id string) (string, error) {
	if id == "" {
		return "+", nil
	}
	ms, n, err := parseStreamID(id)
	if err != nil || fmt.Sprintf(entryIDFormat, ms, n) != id {
		return "", fmt.Errorf("%w: %.40q is not the id of an audit entry; take it from the list", catalog.ErrInvalid, id)
	}
	return fmt.Sprintf("(%d-%d", ms, n), nil
}

func parseStreamID(id string) (ms, n uint64, err error) {
	first, second, _ := strings.Cut(id, "-")
	if ms, err = strconv.ParseUint(first, 10, 64); err != nil {
		return 0, 0, err
	}
	n, err = strconv.ParseUint(second, 10, 64)
	return ms, n, err
}
