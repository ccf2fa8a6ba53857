package redisstore

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"

	"github.com/redis/go-redis/v9"

	"github.com/topsail-serving/topsail/internal/adapter/redisclient"
	"github.com/topsail-serving/topsail/serving"
)

// Store is a catalog in Redis and what belongs to it. All methods may be called
// concurrently.
type Store struct {
	cfg     Config
	log     *slog.Logger
	keys    keys
	scripts scripts
	client  redis.UniversalClient
	slot    chan struct{} // the lock: holds a token while a goroutine reads and publishes
	current atomic.Pointer[snapshot]
	health  health
}

// connections bounds those of a Store, without the ones that wait on streams.
const connections = 8

// Open makes a Store. It waits for Redis for some seconds and succeeds without it:
// then the Store serves the catalog of the snapshot file, or an empty one, until
// Run finds Redis; see State. Close the Store after Run has returned.
func Open(ctx context.Context, cfg Config) (*Store, error) {
	if err := cfg.check(); err != nil {
		return nil, err
	}
	s := &Store{cfg: cfg, log: cfg.Log, keys: newKeys(cfg.Prefix), scripts: newScripts(), slot: make(chan struct{}, 1)}
	if err := s.load(); err != nil {
		return nil, err
	}
	s.client = cfg.Connect(connections, redisclient.Repeat)
	_ = s.refresh(ctx) // State has what is wrong
	if ctx.Err() != nil {
		return nil, fmt.Errorf("open the store: %w", errors.Join(context.Cause(ctx), s.client.Close()))
	}
	state := s.State()
	s.log.Info("opened the store in redis", "addrs", cfg.Addrs, "catalog", state.Source, "revision", state.Revision, "away", state.Away != "")
	return s, nil
}

// load begins with the snapshot file, or with nothing.
func (s *Store) load() error {
	s.health.source = FromNothing
	snap, err := loadFile(s.cfg.Snapshot, s.log)
	if err != nil {
		return err
	}
	if snap == nil {
		s.current.Store(unreadSnapshot())
		return nil
	}
	s.health.source = FromSnapshot
	s.current.Store(snap)
	return nil
}

// Close ends the connections. Snapshots stay valid, and a Watch goes on until its
// context ends.
func (s *Store) Close() error {
	if err := s.client.Close(); err != nil {
		return fmt.Errorf("close the connections to redis: %w", err)
	}
	return nil
}

// Run follows what others change and keeps the snapshot file, until ctx ends; it
// returns why ctx ended. Run it once.
func (s *Store) Run(ctx context.Context) error {
	var parts sync.WaitGroup
	parts.Go(func() { s.follow(ctx) })
	parts.Go(func() { s.keepFile(ctx) })
	parts.Go(func() { s.probeWrites(ctx) })
	parts.Wait()
	return context.Cause(ctx)
}

// Catalog is the current snapshot; it takes no lock.
func (s *Store) Catalog() *serving.Catalog { return s.current.Load().catalog }

// lock acquires the lock. One reading at a time, so that each sees what the last
// one saw, or later: what goes back has gone back in Redis.
func (s *Store) lock(ctx context.Context) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	select {
	case s.slot <- struct{}{}:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func (s *Store) unlock() { <-s.slot }
