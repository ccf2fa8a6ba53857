package redisstore

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/topsail-serving/topsail/test/require"
	"github.com/topsail-serving/topsail/test/wait"
)

// An operator's command knows nothing; the processes that run do.
func TestAskedToRestore(t *testing.T) {
	t.Parallel()
	_, _, a, b := flushed(t)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	require.NoError(t, stranger(t, a).Ask(ctx, RemedyRestore))
	wait.Until(t, "the end of both alarms", func() bool { return a.State().Alarm == "" && b.State().Alarm == "" })
	if len(a.Catalog().Apps) != 2 || len(b.Catalog().Apps) != 2 {
		t.Errorf("restored %v and %v", a.Catalog().Apps, b.Catalog().Apps)
	}
}

func TestAskedToAccept(t *testing.T) {
	t.Parallel()
	_, _, a, b := flushed(t)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	require.NoError(t, stranger(t, a).Ask(ctx, RemedyAccept))
	wait.Until(t, "the end of both alarms", func() bool { return a.State().Alarm == "" && b.State().Alarm == "" })
	if len(a.Catalog().Apps) != 0 || len(b.Catalog().Apps) != 0 {
		t.Errorf("accepted %v and %v", a.Catalog().Apps, b.Catalog().Apps)
	}
}

func TestAskedWithoutAnAlarm(t *testing.T) {
	t.Parallel()
	a := follower(t, config(t))
	apply(t, a, putApp("a"))
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
	defer cancel()
	if err := stranger(t, a).Ask(ctx, RemedyAccept); !errors.Is(err, ErrNoAlarm) {
		t.Errorf("asked in vain: %v", err)
	}
	if len(a.Catalog().Apps) != 1 {
		t.Error("the catalog has changed")
	}
}

// stranger is a Store beside another one that does not run.
func stranger(t *testing.T, other *Store) *Store {
	t.Helper()
	cfg := other.cfg
	cfg.Snapshot = ""
	s, err := Open(t.Context(), cfg)
	require.NoError(t, err)
	t.Cleanup(func() { s.Close() })
	return s
}
