package redisstore

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/topsail-serving/topsail/serving"
)

// The states of an app are spread over the nodes of a Cluster, so what lists them is
// beside them and may be behind: it is for people, and nothing waits for it to be right.
const (
	keptStates = 10_000 // the index names as many states of an app, the last that changed
	noteEvery  = 16     // changes of a state between two notes of that, about
	keptAsides = 16     // states that were set aside, of an app
	statePage  = 500    // states that are looked for at once
)

// StatesOf is some of the states of an app, limit at the most, sorted: of those that
// have changed within StateExpiry, the newest, about.
func (s *Store) StatesOf(ctx context.Context, app string, limit int) ([]serving.StateKey, error) {
	var found []serving.StateKey
	for from := 0; len(found) < limit; from += statePage {
		noted, there, err := s.statesFrom(ctx, app, from)
		if err != nil {
			return nil, fmt.Errorf("list the states of %q: %w", app, err)
		}
		found = append(found, there...)
		if noted < statePage {
			break
		}
	}
	found = found[:max(0, min(limit, len(found)))]
	slices.SortFunc(found, serving.StateKey.Compare)
	return found, nil
}

// statesFrom reads a page of the index: how many it notes, and which of them are there.
func (s *Store) statesFrom(ctx context.Context, app string, from int) (noted int, there []serving.StateKey, err error) {
	err = s.call(ctx, func(ctx context.Context) error {
		names, err := s.client.ZRevRange(ctx, s.keys.states(app), int64(from), int64(from+statePage-1)).Result()
		if err != nil {
			return err
		}
		noted = len(names)
		there, err = s.present(ctx, names)
		return err
	})
	return noted, there, err
}

// present are the states that there are, of those with these names.
func (s *Store) present(ctx context.Context, names []string) (there []serving.StateKey, err error) {
	var keys []serving.StateKey
	var answers []*redis.IntCmd
	_, err = s.client.Pipelined(ctx, func(p redis.Pipeliner) error {
		for _, name := range names {
			if key, err := serving.ParseStateKey(name); err == nil {
				keys, answers = append(keys, key), append(answers, p.Exists(ctx, s.keys.state(key)))
			}
		}
		return nil
	})
	for i, key := range keys {
		if answers[i].Val() == 1 {
			there = append(there, key)
		}
	}
	return there, err
}

// noteState has StatesOf find a state. It is stored already: so an error is not told.
func (s *Store) noteState(ctx context.Context, key serving.StateKey) {
	_, _ = s.addTo(ctx, s.keys.states(key.App), key.String(), keptStates)
}

// noteAside bounds what was set aside of an app. What it does not find expires.
func (s *Store) noteAside(ctx context.Context, app, name string) {
	older, err := s.addTo(ctx, s.keys.asides(app), name, keptAsides)
	if err != nil || len(older) == 0 {
		return
	}
	_ = s.call(ctx, func(ctx context.Context) error {
		_, err := s.client.Pipelined(ctx, func(p redis.Pipeliner) error {
			for _, name := range older {
				p.Unlink(ctx, name)
			}
			return nil
		})
		return err
	})
}

// addTo adds a name to an index that keeps so many, and returns those that it drops.
func (s *Store) addTo(ctx context.Context, index, name string, keep int) (dropped []string, err error) {
	var oldest *redis.StringSliceCmd
	err = s.call(ctx, func(ctx context.Context) error {
		_, err := s.client.TxPipelined(ctx, func(p redis.Pipeliner) error {
			p.ZAdd(ctx, index, redis.Z{Score: float64(time.Now().UnixMilli()), Member: name})
			oldest = p.ZRange(ctx, index, 0, int64(-keep-1))
			p.ZRemRangeByRank(ctx, index, 0, int64(-keep-1))
			p.Expire(ctx, index, serving.StateExpiry)
			return nil
		})
		return err
	})
	return oldest.Val(), err
}
