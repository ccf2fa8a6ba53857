package redisstore

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strconv"
	"time"

	"github.com/topsail-serving/topsail/serving"
)

// expirySeconds is how long a state is kept that is not read.
const expirySeconds = int(serving.StateExpiry / time.Second)

// LoadState returns a selection state and the revision that SwapState asks for; nil and
// 0 where there is none. It keeps the state for another StateExpiry.
func (s *Store) LoadState(ctx context.Context, key serving.StateKey) (text []byte, revision uint64, err error) {
	aside := s.keys.aside(key)
	result, err := s.run(ctx, s.scripts.load, []string{s.keys.state(key), aside}, expirySeconds)
	if err != nil {
		return nil, 0, fmt.Errorf("load state %v: %w", key, err)
	}
	switch answer := result.([]any); {
	case len(answer) == 0:
		return nil, 0, nil
	case answer[0] == damaged:
		s.log.Error("what was in place of a selection state is none, and was set aside", "state", key.String(), "as", aside)
		s.noteAside(ctx, key.App, aside)
		return nil, 0, nil
	default:
		revision, err = strconv.ParseUint(answer[0].(string)[:16], 16, 64)
		return []byte(answer[1].(string)), revision, err
	}
}

// SwapState stores a selection state, if it is still at a revision (0: there is none
// yet), and returns the next one. It fails with ErrStateConflict where another writer
// was quicker. When it fails otherwise, the state may have been stored.
//
// Revisions are drawn at random: so none fits by accident, also after a failover to a
// Redis that does not know the newest.
func (s *Store) SwapState(ctx context.Context, key serving.StateKey, revision uint64, text []byte) (next uint64, err error) {
	if err := serving.CheckState(text); err != nil {
		return 0, err
	}
	next = max(rand.Uint64(), 1)
	outcome, err := s.run(ctx, s.scripts.swap, []string{s.keys.state(key)}, digits(revision), digits(next), text, key.String(), expirySeconds)
	switch {
	case err != nil:
		return 0, fmt.Errorf("store state %v: %w", key, err)
	case outcome == conflict:
		return 0, fmt.Errorf("store state %v: %w", key, serving.ErrStateConflict)
	}
	if revision == 0 || rand.IntN(noteEvery) == 0 {
		s.noteState(ctx, key)
	}
	return next, nil
}

// SetStateAside moves a state that is at a revision to another key of Redis, which it
// returns: a hash like that of the state, which also says why and when. There is no
// state from then on. It fails with ErrStateConflict where another writer was quicker.
// The newest few of an app are kept, for StateExpiry at the longest.
func (s *Store) SetStateAside(ctx context.Context, key serving.StateKey, revision uint64, why string) (as string, err error) {
	if revision == 0 {
		return "", fmt.Errorf("set state %v aside: %w", key, serving.ErrStateConflict)
	}
	as = s.keys.aside(key)
	at := time.Now().UTC().Format(time.RFC3339)
	outcome, err := s.run(ctx, s.scripts.aside, []string{s.keys.state(key), as}, digits(revision), why, at, expirySeconds)
	switch {
	case err != nil:
		return "", fmt.Errorf("set state %v aside: %w", key, err)
	case outcome == conflict:
		return "", fmt.Errorf("set state %v aside: %w", key, serving.ErrStateConflict)
	}
	s.noteAside(ctx, key.App, as)
	return as, nil
}

// digits is a revision as scripts compare it.
func digits(revision uint64) string {
	if revision == 0 {
		return ""
	}
	return fmt.Sprintf("%016x", revision)
}
