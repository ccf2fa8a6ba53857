package redisstore

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/topsail-serving/topsail/serving"
)

// probeEvery is how often a Redis that refused a write is asked whether it takes them again.
const probeEvery = 2 * time.Second

// refusal is what Redis means that takes no writes, in words for clients, or nil.
func refusal(err error) *serving.Unwritable {
	if err == nil {
		return nil
	}
	for _, r := range []struct{ code, reason, remedy string }{
		{"OOM", "redis has no memory left", "raise its maxmemory"},
		{"MISCONF", "redis cannot write to its disk", "make room there, or repair it"},
		{"READONLY", "redis is read-only", "set redis.addrs to the one that takes writes"},
		{"NOREPLICAS", "redis has too few replicas", "bring its replicas back"},
		{"NOPERM", "the user of redis has no permission", "give it all commands on the keys of redis.prefix"},
		{"The user executing the script can't run", "the user of redis has no permission", "give it all commands on the keys of redis.prefix"},
	} {
		// A script before Redis 7 quotes what stopped it.
		if redis.HasErrorPrefix(err, r.code+" ") || strings.Contains(err.Error(), "-"+r.code+" ") {
			return &serving.Unwritable{Reason: errors.New(r.reason), Remedy: r.remedy}
		}
	}
	return nil
}

// Condition is why Redis takes no writes, for operators, or nil.
func (s *Store) Condition() error {
	s.health.mu.Lock()
	defer s.health.mu.Unlock()
	if s.health.unable == nil {
		return nil
	}
	return fmt.Errorf("nothing can be written: %w; changes and feedback are refused until it can", s.health.unable)
}

// Writable says whether Redis has refused no write, or has taken one since.
func (s *Store) Writable() bool {
	s.health.mu.Lock()
	defer s.health.mu.Unlock()
	return s.health.unable == nil
}

// noteWrites takes in whether Redis takes writes, and says once when that changes.
func (s *Store) noteWrites(why *serving.Unwritable, said error) {
	s.health.mu.Lock()
	defer s.health.mu.Unlock()
	switch h := &s.health; {
	case why != nil && h.unable == nil:
		s.log.Error("redis takes no writes: changes and feedback are refused until it does", "why", why.Reason, "remedy", why.Remedy, "err", said)
	case why == nil && h.unable != nil:
		s.log.Info("redis takes writes again")
	}
	s.health.unable = why
}

// probeWrites finds out when a Redis that refused writes takes them again, until ctx ends.
func (s *Store) probeWrites(ctx context.Context) {
	tick := time.NewTicker(probeEvery)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
		if !s.Writable() && s.probeAll(ctx) == nil {
			s.noteWrites(nil, nil)
		}
	}
}

// probeAll writes keys whose names begin as ours do.
func (s *Store) probeAll(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	return errors.Join(s.probe(ctx, "{"+s.keys.prefix+"}"), s.probe(ctx, s.keys.prefix))
}
