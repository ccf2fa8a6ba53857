package redisstore

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
)

// Diagnosis is what a Redis says of itself, for people. Of a Cluster it is the node
// that has the catalog.
type Diagnosis struct {
	Version    string
	AppendOnly bool
	Fsync      string // "always", "everysec" or "no"; empty: the user may not ask
	Eviction   string // the policy, such as "noeviction"
	UsedBytes  int64
	MaxBytes   int64          // 0: no bound
	Ahead      *time.Duration // of its clock to ours; nil: the user may not ask
	Alarm      string         // of a process that runs; empty: none
	Info       error          // why all but Ahead, Alarm and Write is not known, nil where it is
	Write      error          // why keys cannot be written, nil where they can
}

// probeHolds is how long a probe key stays that could not be deleted.
const probeHolds = 10 * time.Second

// Diagnose asks Redis how it is, and writes keys to see whether that works. The
// error says that it does not answer.
func (s *Store) Diagnose(ctx context.Context) (Diagnosis, error) {
	node, err := s.node(ctx)
	if err != nil {
		return Diagnosis{}, err
	}
	info, err := node.Info(ctx).Result()
	d := newDiagnosis(info)
	d.Info = err
	if values, err := node.ConfigGet(ctx, "appendfsync").Result(); err == nil { // hosted ones refuse
		d.Fsync = values["appendfsync"]
	}
	asked := time.Now()
	if now, err := node.Time(ctx).Result(); err == nil {
		d.Ahead = new(now.Sub(asked.Add(time.Since(asked) / 2)))
	}
	d.Alarm, err = s.client.Get(ctx, s.keys.alarm).Result()
	if err != nil && !errors.Is(err, redis.Nil) {
		return d, fmt.Errorf("look for an alarm: %w", err)
	}
	d.Write = s.probeAll(ctx)
	return d, nil
}

// node is the one that has the catalog.
func (s *Store) node(ctx context.Context) (redis.Cmdable, error) {
	cluster, ok := s.client.(*redis.ClusterClient)
	if !ok {
		return s.client, nil
	}
	node, err := cluster.MasterForKey(ctx, s.keys.catalog)
	if err != nil {
		return nil, fmt.Errorf("find the node with the catalog: %w", err)
	}
	return node, nil
}

// newDiagnosis reads the answer to INFO.
func newDiagnosis(info string) Diagnosis {
	fields := map[string]string{}
	for line := range strings.Lines(info) {
		if name, value, ok := strings.Cut(strings.TrimSpace(line), ":"); ok {
			fields[name] = value
		}
	}
	d := Diagnosis{Version: fields["redis_version"], AppendOnly: fields["aof_enabled"] == "1", Eviction: fields["maxmemory_policy"]}
	d.UsedBytes, _ = strconv.ParseInt(fields["used_memory"], 10, 64) // 0 where it does not say
	d.MaxBytes, _ = strconv.ParseInt(fields["maxmemory"], 10, 64)
	return d
}

// probe writes a key whose name begins as others of ours do, and deletes it.
func (s *Store) probe(ctx context.Context, prefix string) error {
	key := prefix + ":doctor"
	if err := s.client.Set(ctx, key, "", probeHolds).Err(); err != nil {
		return fmt.Errorf("write %s: %w", key, err)
	}
	if err := s.client.Del(ctx, key).Err(); err != nil {
		return fmt.Errorf("delete %s: %w", key, err)
	}
	return nil
}
