package redisstore

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/topsail-serving/topsail/serving"
	"github.com/topsail-serving/topsail/serving/catalog"
)

// usageFields bounds the fields of the usage of one object: each stage has nine at the
// most.
const usageFields = 9 * serving.MaxUsageStages

// AddUsage takes a report of usage, once however often it comes: where its number is not
// above all that its writer has sent, nothing changes. What it counts of an object that
// is not in the catalog, or that was registered after the revision that the report names,
// is left out.
func (s *Store) AddUsage(ctx context.Context, report serving.UsageReport) error {
	if n := len(report.Counted); n > serving.MaxUsageReport {
		return fmt.Errorf("a report of usage has at most %d counts, and this one has %d", serving.MaxUsageReport, n)
	}
	keys := []string{s.keys.usageWriter(report.Writer), s.keys.catalog}
	args := []any{report.Number, int(serving.UsageWriters / time.Second), time.Now().UnixMilli(), report.Revision, usageFields}
	places := map[string]int{} // of objects among the keys, from 1 on
	for _, u := range report.Counted {
		key := s.keys.usage(u.Key)
		if places[key] == 0 {
			keys = append(keys, key)
			places[key] = len(keys)
		}
		count, err := usageArgs(u)
		if err != nil {
			return err
		}
		args = append(append(args, places[key]), count...)
	}
	if _, err := s.run(ctx, s.scripts.usage, keys, args...); err != nil {
		return fmt.Errorf("report usage: %w", err)
	}
	return nil
}

// usageArgs is one count as usage.lua takes it, but for the place of its object.
func usageArgs(u serving.Usage) ([]any, error) {
	last, at := "", ""
	if u.Last != nil {
		text, err := json.Marshal(u.Last)
		if err != nil {
			return nil, fmt.Errorf("encode the last failure of %v: %w", u.Key, err)
		}
		last, at = string(text), strconv.FormatInt(u.Last.At.UnixMilli(), 10)
	}
	return []any{
		usageDocument(u.Key), u.Key.Stage, u.Answers, u.Cached, u.Failed, u.Missed, u.Micros,
		u.Least.Nanoseconds(), u.Most.Nanoseconds(), at, last,
	}, nil
}

// usageDocument is the field of an object in the catalog.
func usageDocument(k serving.UsageKey) string {
	if k.App != "" {
		return catalog.Apps + "/" + k.App
	}
	return catalog.Versions + "/" + k.ModelID.String()
}

// usageKeys are the keys of the usage of the apps and versions among documents, in their
// order.
func (s *Store) usageKeys(docs []catalog.Document) (keys []string) {
	for _, doc := range docs {
		switch doc.Kind {
		case catalog.Apps:
			keys = append(keys, s.keys.usage(serving.UsageKey{App: doc.Key}))
		case catalog.Versions:
			model, version, _ := strings.Cut(doc.Key, ":")
			keys = append(keys, s.keys.usage(serving.UsageKey{ModelID: serving.ModelID{Model: model, Version: version}}))
		}
	}
	return keys
}

// usageBatch is how many objects are read in one conversation.
const usageBatch = 500

// UsageOf is what is known of objects, in their order, each followed by its stages,
// sorted. Objects of which nothing is known are left out.
func (s *Store) UsageOf(ctx context.Context, objects []serving.UsageKey) (all []serving.Usage, err error) {
	for batch := range slices.Chunk(objects, usageBatch) {
		var answers []*redis.MapStringStringCmd
		err := s.call(ctx, func(ctx context.Context) error {
			answers = answers[:0]
			_, err := s.client.Pipelined(ctx, func(p redis.Pipeliner) error {
				for _, object := range batch {
					answers = append(answers, p.HGetAll(ctx, s.keys.usage(object)))
				}
				return nil
			})
			return err
		})
		if err != nil {
			return nil, fmt.Errorf("read usage: %w", err)
		}
		for i, object := range batch {
			all = append(all, decodeUsage(object.Object(), answers[i].Val())...)
		}
	}
	return all, nil
}

// decodeUsage reads the usage of an object: its own, then that of its stages. What is
// no number counts as 0.
func decodeUsage(object serving.UsageKey, fields map[string]string) []serving.Usage {
	if len(fields) == 0 {
		return nil
	}
	number := func(name string) uint64 {
		n, _ := strconv.ParseUint(fields[name], 10, 64)
		return n
	}
	since := time.Time{}
	if ms := number("since"); ms > 0 {
		since = time.UnixMilli(int64(ms)).UTC()
	}
	stages := []string{""}
	for field := range fields {
		if stage, _, counted := strings.Cut(field, "/"); counted && !slices.Contains(stages, stage) {
			stages = append(stages, stage)
		}
	}
	slices.Sort(stages)
	var all []serving.Usage
	for _, stage := range stages {
		of := stage + "/"
		u := serving.Usage{
			Key: object, Since: since,
			Answers: number(of + "answers"), Cached: number(of + "cached"), Failed: number(of + "failed"), Missed: number(of + "missed"),
			Micros: number(of + "micros"), Least: time.Duration(number(of + "least")), Most: time.Duration(number(of + "most")),
		}
		u.Key.Stage = stage
		last := &serving.UsageFailure{}
		if json.Unmarshal([]byte(fields[of+"last"]), last) == nil {
			u.Last = last
		}
		all = append(all, u)
	}
	return all
}
