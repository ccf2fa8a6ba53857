package redisstore

import (
	"context"
	"time"
)

// saveEvery is how often the snapshot file is written at most, and how soon a
// failed write is repeated.
const saveEvery = time.Second

// keepFile keeps the newest snapshot in the file, until ctx ends, and then once more.
func (s *Store) keepFile(ctx context.Context) {
	if s.cfg.Snapshot == "" {
		return
	}
	keeper := keeper{store: s}
	for ctx.Err() == nil {
		now := s.current.Load()
		if !keeper.save(now) {
			pause(ctx, saveEvery)
			continue
		}
		select {
		case <-now.superseded:
			pause(ctx, saveEvery)
		case <-ctx.Done():
		}
	}
	keeper.save(s.current.Load())
}

// keeper knows what the file holds.
type keeper struct {
	store  *Store
	saved  position
	failed bool
}

// save writes the snapshot, if the file does not hold it yet.
func (k *keeper) save(snap *snapshot) (ok bool) {
	if snap.at == k.saved {
		return true // or there is nothing yet
	}
	path, log := k.store.cfg.Snapshot, k.store.log
	if err := saveFile(path, snap); err != nil {
		if !k.failed {
			log.Error("cannot write the snapshot; a start without Redis would find an older one", "file", path, "err", err)
		}
		k.failed = true
		return false
	}
	if k.failed {
		log.Info("the snapshot can be written again", "file", path)
	}
	k.saved, k.failed = snap.at, false
	return true
}
