package redisstore

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"

	"github.com/redis/go-redis/v9"

	"github.com/topsail-serving/topsail/internal/adapter/stored"
	"github.com/topsail-serving/topsail/serving"
)

// scanPage is how many keys Redis looks at in one step.
const scanPage = 1000

// EachState calls fn with every selection state. It ends with the first error of fn, or with
// ctx. States that change meanwhile come as they are at some moment.
func (s *Store) EachState(ctx context.Context, fn func(key serving.StateKey, text []byte) error) error {
	each := func(ctx context.Context, node redis.UniversalClient) error { return s.eachStateOf(ctx, node, fn) }
	if cluster, ok := s.client.(*redis.ClusterClient); ok {
		var nodes []*redis.Client
		collect := make(chan *redis.Client, 1000)
		err := cluster.ForEachMaster(ctx, func(_ context.Context, node *redis.Client) error { collect <- node; return nil })
		if err != nil {
			return fmt.Errorf("list the nodes of Redis: %w", err)
		}
		close(collect)
		for node := range collect {
			nodes = append(nodes, node)
		}
		for _, node := range nodes {
			if err := each(ctx, node); err != nil {
				return err
			}
		}
		return nil
	}
	return each(ctx, s.client)
}

func (s *Store) eachStateOf(ctx context.Context, node redis.UniversalClient, fn func(serving.StateKey, []byte) error) error {
	for cursor := uint64(0); ; {
		var names []string
		err := s.call(ctx, func(ctx context.Context) (err error) {
			names, cursor, err = node.Scan(ctx, cursor, s.keys.prefix+":state:{*}", scanPage).Result()
			return err
		})
		if err != nil {
			return fmt.Errorf("list states: %w", err)
		}
		for batch := range slices.Chunk(names, statePage) {
			if err := s.readStates(ctx, batch, fn); err != nil {
				return err
			}
		}
		if cursor == 0 {
			return nil
		}
	}
}

// readStates passes over what is no state.
func (s *Store) readStates(ctx context.Context, names []string, fn func(serving.StateKey, []byte) error) error {
	var answers []*redis.SliceCmd
	err := s.call(ctx, func(ctx context.Context) error {
		answers = answers[:0]
		_, err := s.client.Pipelined(ctx, func(p redis.Pipeliner) error {
			for _, name := range names {
				answers = append(answers, p.HMGet(ctx, name, "key", "text"))
			}
			return nil
		})
		if err != nil && redis.HasErrorPrefix(err, "WRONGTYPE") {
			err = nil
		}
		return err
	})
	if err != nil {
		return fmt.Errorf("read states: %w", err)
	}
	for _, answer := range answers {
		values := answer.Val()
		if len(values) != 2 {
			continue
		}
		name, named := values[0].(string)
		text, there := values[1].(string)
		if key, err := serving.ParseStateKey(name); named && there && err == nil {
			if err := fn(key, []byte(text)); err != nil {
				return err
			}
		}
	}
	return nil
}

// RestoreUsage sets the usage of objects that are in the catalog, each followed by its stages,
// in place of what was counted. What is reported of them as they were before does not count.
func (s *Store) RestoreUsage(ctx context.Context, all []serving.Usage) error {
	cat := s.Catalog()
	for batch := range slices.Chunk(all, usageBatch) {
		err := s.call(ctx, func(ctx context.Context) error {
			_, err := s.client.Pipelined(ctx, func(p redis.Pipeliner) error {
				for _, one := range batch {
					if one.Key.App != "" && cat.Apps[one.Key.App] == nil || one.Key.App == "" && cat.Version(one.Key.ModelID) == nil {
						continue
					}
					fields, err := restoredUsage(one, cat.Revision)
					if err != nil {
						return err
					}
					if one.Key.Stage == "" {
						p.Del(ctx, s.keys.usage(one.Key.Object()))
					}
					p.HSet(ctx, s.keys.usage(one.Key.Object()), fields...)
				}
				return nil
			})
			return err
		})
		if err != nil {
			return fmt.Errorf("restore usage: %w", err)
		}
	}
	return nil
}

// restoredUsage are the fields of usage.lua.
func restoredUsage(u serving.Usage, revision uint64) ([]any, error) {
	of := u.Key.Stage + "/"
	fields := []any{
		of + "answers", u.Answers, of + "cached", u.Cached, of + "failed", u.Failed, of + "missed", u.Missed, of + "micros", u.Micros,
		of + "least", u.Least.Nanoseconds(), of + "most", u.Most.Nanoseconds(),
	}
	if u.Least == 0 { // there was none
		fields = fields[:len(fields)-4]
	}
	if u.Last != nil {
		text, err := json.Marshal(u.Last)
		if err != nil {
			return nil, err
		}
		fields = append(fields, of+"last_at", u.Last.At.UnixMilli(), of+"last", text)
	}
	if u.Key.Stage == "" {
		fields = append(fields, "revision", revision)
		if !u.Since.IsZero() {
			fields = append(fields, "since", u.Since.UnixMilli())
		}
	}
	return fields, nil
}

// RestoreAudit replaces the audit log by entries, the oldest first. It makes the new log
// beside the one that there is, and then takes its place, with what came meanwhile.
func (s *Store) RestoreAudit(ctx context.Context, entries []serving.AuditEntry) error {
	next := s.keys.audit + ":restored"
	last := ""
	err := s.call(ctx, func(ctx context.Context) error {
		newest, err := s.client.XRevRangeN(ctx, s.keys.audit, "+", "-", 1).Result()
		if len(newest) > 0 {
			last = newest[0].ID
		}
		if err == nil {
			err = s.client.Del(ctx, next).Err()
		}
		return err
	})
	if err != nil {
		return fmt.Errorf("restore the audit log: %w", err)
	}
	// An ID says the millisecond of its entry, and no ID is below the one before.
	at, n := int64(0), 0
	for batch := range slices.Chunk(entries[max(0, len(entries)-keptEntries):], entryPage) {
		err := s.call(ctx, func(ctx context.Context) error {
			_, err := s.client.Pipelined(ctx, func(p redis.Pipeliner) error {
				for _, e := range batch {
					text, err := stored.EncodeEntry(e)
					if err != nil {
						return err
					}
					if ms := e.At.UnixMilli(); ms > at {
						at, n = ms, 0
					}
					n++
					p.XAdd(ctx, &redis.XAddArgs{Stream: next, ID: strconv.FormatInt(at, 10) + "-" + strconv.Itoa(n), Values: []any{"write", "restored", "entry", text}})
				}
				return nil
			})
			return err
		})
		if err != nil {
			return fmt.Errorf("restore the audit log: %w", err)
		}
	}
	if _, err := s.run(ctx, s.scripts.audited, []string{s.keys.audit, next}, last); err != nil {
		return fmt.Errorf("restore the audit log: %w", err)
	}
	return nil
}

// SkipQueryIDs has later leases begin after a block.
func (s *Store) SkipQueryIDs(ctx context.Context, past uint32) error {
	if _, err := s.run(ctx, s.scripts.skip, []string{s.keys.lease}, past); err != nil {
		return fmt.Errorf("skip query ids: %w", err)
	}
	return nil
}
