package redisstore

import (
	"context"
	"log/slog"
	"time"

	"github.com/topsail-serving/topsail/internal/condition"
	"github.com/topsail-serving/topsail/internal/retry"
)

// saveEvery is how often the snapshot file is written at most, and how soon a
// failed write is repeated.
const saveEvery = time.Second

// keepFile keeps the newest snapshot in the file, until ctx ends, and then once more.
func (s *Store) keepFile(ctx context.Context) {
	if s.cfg.Snapshot == "" {
		return
	}
	keeper := keeper{store: s, writing: condition.Condition{
		Log: s.log.With("file", s.cfg.Snapshot), Level: slog.LevelError,
		Begins: "cannot write the snapshot; a start without Redis would find an older one", Ends: "the snapshot can be written again",
	}}
	for ctx.Err() == nil {
		now := s.current.Load()
		if !keeper.save(now) {
			retry.Sleep(ctx, saveEvery)
			continue
		}
		select {
		case <-now.superseded:
			retry.Sleep(ctx, saveEvery)
		case <-ctx.Done():
		}
	}
	keeper.save(s.current.Load())
}

// keeper knows what the file holds.
type keeper struct {
	store   *Store
	saved   position
	writing condition.Condition
}

// save writes the snapshot, if the file does not hold it yet.
func (k *keeper) save(snap *snapshot) (ok bool) {
	if snap.at == k.saved {
		return true // or there is nothing yet
	}
	err := saveFile(k.store.cfg.Snapshot, snap)
	if err == nil {
		k.saved = snap.at
	}
	k.writing.Note(err)
	return err == nil
}
