package cluster

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"time"

	"github.com/topsail-serving/topsail/cmd/topsail/config"
	"github.com/topsail-serving/topsail/internal/adapter/redisstore"
	"github.com/topsail-serving/topsail/serving"
	"github.com/topsail-serving/topsail/serving/catalog"
)

// within bounds what a person waits for.
const within = 15 * time.Second

// operate opens the store for one thing that a person asks for.
func operate[T any](ctx context.Context, cfg *config.Config, log *slog.Logger, do func(ctx context.Context, store *redisstore.Store) (T, error)) (result T, err error) {
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	quiet := slog.New(atLeast{log.Handler(), slog.LevelWarn})
	store, err := newParts(cfg, quiet).openStore(ctx, "")
	if err != nil {
		return result, err
	}
	defer func() { err = errors.Join(err, store.Close()) }()
	if away := store.State().Away; away != "" {
		return result, fmt.Errorf("redis at %v does not answer: %s; check redis.addrs", cfg.Redis.Addrs, away)
	}
	return do(ctx, store)
}

// Apply brings the apps and models of the configuration file into the store. Versions may
// become something else under their names only with replace.
func Apply(ctx context.Context, cfg *config.Config, replace bool, log *slog.Logger) (catalog.Report, error) {
	var report catalog.Report
	change := catalog.Import{Current: cfg.Current, Replace: replace, Report: &report}
	change.Apps, change.Versions = cfg.Objects()
	return operate(ctx, cfg, log, func(ctx context.Context, store *redisstore.Store) (catalog.Report, error) {
		_, err := store.Apply(ctx, catalog.Signed{Change: change, By: serving.Author{Who: serving.ByFile}}, 0)
		return report, err
	})
}

// Restore ends an alarm about a lost store: it has a process that knows the last good
// state write it back, or with accept, take what Redis holds. With a snapshot file
// it does so itself. It says what was done.
func Restore(ctx context.Context, cfg *config.Config, snapshot string, accept bool, log *slog.Logger) (string, error) {
	if snapshot != "" {
		return restoreFrom(ctx, cfg, snapshot, accept, log)
	}
	remedy, did := redisstore.RemedyRestore, "the last good state was written back"
	if accept {
		remedy, did = redisstore.RemedyAccept, "the contents of Redis are accepted"
	}
	return operate(ctx, cfg, log, func(ctx context.Context, store *redisstore.Store) (string, error) {
		err := store.Ask(ctx, remedy)
		if errors.Is(err, redisstore.ErrNoAlarm) {
			return "", fmt.Errorf("%w, so there is nothing to do; if no process that knew the state is running, name a snapshot file with --snapshot", err)
		}
		if err != nil {
			return "", err
		}
		return did, nil
	})
}

func restoreFrom(ctx context.Context, cfg *config.Config, snapshot string, accept bool, log *slog.Logger) (string, error) {
	if _, err := os.Stat(snapshot); err != nil {
		return "", fmt.Errorf("cannot find the snapshot: %w; each process keeps one in its data directory", err)
	}
	store, err := newParts(cfg, log).openStoreOn(ctx, snapshot)
	if err != nil {
		return "", err
	}
	defer store.Close()
	resolve, did := store.Restore, "wrote the last good state back: revision %d, from %s"
	if accept {
		resolve, did = store.Accept, "the contents of Redis are accepted: revision %d; it was compared with %s"
	}
	cat, err := resolve(ctx)
	if errors.Is(err, redisstore.ErrNotLost) {
		return "nothing to do: Redis has the state of " + snapshot + ", or a newer one", nil
	}
	if err != nil {
		return "", err
	}
	return fmt.Sprintf(did, cat.Revision, snapshot), nil
}

// atLeast is a log that leaves out what is below a level.
type atLeast struct {
	slog.Handler
	level slog.Level
}

func (h atLeast) Enabled(ctx context.Context, level slog.Level) bool {
	return level >= h.level && h.Handler.Enabled(ctx, level)
}
