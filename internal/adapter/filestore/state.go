package filestore

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/topsail-serving/topsail/serving"
)

// seenEvery is how old a state's last sight may be before a load notes a new one: so
// that loads do not write.
const seenEvery = 24 * time.Hour

// LoadState returns a selection state and the revision that SwapState asks for; nil and
// 0 where there is none. It keeps the state for another StateExpiry, to a day.
func (s *Store) LoadState(ctx context.Context, key serving.StateKey) (text []byte, revision uint64, err error) {
	if ctx.Err() != nil {
		return nil, 0, fmt.Errorf("load state %v: %w", key, context.Cause(ctx))
	}
	now := time.Now()
	var found state
	err = s.view(func(t *tx) error {
		if l, there := openLearned(t); there {
			found = l.live(key.String(), now)
			found.text = slices.Clone(found.text)
		}
		return nil
	})
	switch {
	case err != nil:
		return nil, 0, fmt.Errorf("load state %v: %w", key, err)
	case found.revision == 0:
		return nil, 0, nil
	case now.Sub(found.seen) >= seenEvery:
		s.see(ctx, key.String(), now)
	}
	return found.text, found.revision, nil
}

// see notes that a state has been seen. Where that fails, the next load tries again.
func (s *Store) see(ctx context.Context, name string, now time.Time) {
	_ = s.learn(ctx, func(l learned) error {
		found := l.live(name, now)
		if found.revision == 0 {
			return nil
		}
		return l.put(name, state{found.revision, now, found.text})
	})
}

// SwapState stores a selection state, if it is still at a revision (0: there is none
// yet), and returns the next one. It fails with ErrStateConflict where another writer
// was quicker. The states that were not seen for the longest make room.
func (s *Store) SwapState(ctx context.Context, key serving.StateKey, revision uint64, text []byte) (next uint64, err error) {
	if err := serving.CheckState(text); err != nil {
		return 0, err
	}
	now := time.Now()
	err = s.learn(ctx, func(l learned) (err error) {
		if l.live(key.String(), now).revision != revision {
			return serving.ErrStateConflict
		}
		if next, err = l.nextRevision(); err != nil {
			return err
		}
		if err := l.put(key.String(), state{next, now, text}); err != nil {
			return err
		}
		return l.makeRoom(bounds{maxStates, maxStateBytes}, now)
	})
	if err != nil {
		return 0, fmt.Errorf("store state %v: %w", key, err)
	}
	return next, nil
}

// SetStateAside moves a state that is at a revision to another place in the file, which
// it returns; there is no state from then on. It fails with ErrStateConflict where
// another writer was quicker. The newest few of an app are kept, for StateExpiry at the
// longest.
func (s *Store) SetStateAside(ctx context.Context, key serving.StateKey, revision uint64, why string) (as string, err error) {
	now := time.Now()
	err = s.learn(ctx, func(l learned) error {
		found := l.live(key.String(), now)
		if found.revision != revision || revision == 0 {
			return serving.ErrStateConflict
		}
		name := asideName(key.App, revision)
		as = fmt.Sprintf("%s: %s/%s/%s", s.path, learnedBucket, asideBucket, name)
		if err := l.setAside(name, aside{Key: key.String(), Revision: revision, Why: why, At: now.UTC(), Text: found.text}); err != nil {
			return err
		}
		return l.forgetAsides(key.App, bounds{keptAsides, keptAsideBytes}, now)
	})
	if err != nil {
		return "", fmt.Errorf("set state %v aside: %w", key, err)
	}
	return as, nil
}

// StatesOf is some of the states of an app, limit at the most, sorted.
func (s *Store) StatesOf(ctx context.Context, app string, limit int) (keys []serving.StateKey, err error) {
	if ctx.Err() != nil {
		return nil, fmt.Errorf("list the states of %q: %w", app, context.Cause(ctx))
	}
	now := time.Now()
	err = s.view(func(t *tx) error {
		if l, there := openLearned(t); there {
			keys = l.keysOf(app, limit, now)
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("list the states of %q: %w", app, err)
	}
	slices.SortFunc(keys, serving.StateKey.Compare)
	return keys, nil
}

// learn changes the selection states, all or nothing.
func (s *Store) learn(ctx context.Context, change func(learned) error) error {
	if err := s.lock(ctx); err != nil {
		return err
	}
	defer s.unlock()
	return s.update(func(t *tx) error {
		l, err := makeLearned(t)
		if err != nil {
			return err
		}
		return change(l)
	})
}
