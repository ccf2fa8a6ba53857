//go:build servers

package redisstore

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/topsail-serving/topsail/serving"
	"github.com/topsail-serving/topsail/test/contract"
	"github.com/topsail-serving/topsail/test/require"
	"github.com/topsail-serving/topsail/test/wait"
)

func TestStatesContractInCluster(t *testing.T) {
	cluster := clusterConfig(t)
	t.Parallel()
	contract.States(t, func(t *testing.T) func() contract.StateStore {
		cluster.Prefix = fmt.Sprintf("test-%d", prefixes.Add(1))
		s := open(t, cluster)
		return func() contract.StateStore { return s }
	})
}

// TestNoWrites has a Redis without memory: states can be read, and not be changed.
func TestNoWrites(t *testing.T) {
	t.Parallel()
	server := ownRedis(t, t.TempDir())
	s, operator := open(t, configOf(server)), client(t, server)
	key := serving.StateKey{App: "a"}
	revision, err := s.SwapState(t.Context(), key, 0, []byte("1"))
	require.NoError(t, err)
	require.NoError(t, operator.ConfigSet(t.Context(), "maxmemory", "1").Err())
	if _, err := s.SwapState(t.Context(), key, revision, []byte("2")); err == nil || errors.Is(err, serving.ErrStateConflict) {
		t.Errorf("swapped with error %v", err)
	}
	if _, err := s.SetStateAside(t.Context(), key, revision, "why"); err == nil || errors.Is(err, serving.ErrStateConflict) {
		t.Errorf("set aside with error %v", err)
	}
	text, at, err := s.LoadState(t.Context(), key)
	if err != nil || string(text) != "1" || at != revision {
		t.Errorf("got %q at %d and error %v", text, at, err)
	}
}

// TestLearningAway has a Redis that is frozen, then killed, and then back.
func TestLearningAway(t *testing.T) {
	t.Parallel()
	server := ownRedis(t, t.TempDir())
	s, key := open(t, configOf(server)), serving.StateKey{App: "a"}
	revision, err := s.SwapState(t.Context(), key, 0, []byte("1"))
	require.NoError(t, err)
	fails := func(within time.Duration) {
		t.Helper()
		begun := time.Now()
		ctx, cancel := context.WithTimeout(t.Context(), within)
		defer cancel()
		_, _, loading := s.LoadState(ctx, key)
		_, swapping := s.SwapState(ctx, key, revision, []byte("2"))
		_, aside := s.SetStateAside(ctx, key, revision, "why")
		_, listing := s.StatesOf(ctx, "a", 10)
		_, reading := s.RecordOf(ctx, "a", 1)
		_, newest := s.NewestRecord(ctx, "a", "", "", serving.InputHash{})
		putting := s.PutRecords(ctx, []*serving.Record{{App: "a", Expires: time.Now().Add(time.Hour)}})
		marking := s.MarkLearned(ctx, "a", 1)
		for i, err := range []error{loading, swapping, aside, listing, reading, newest, putting, marking} {
			if err == nil || errors.Is(err, serving.ErrNoRecord) || errors.Is(err, serving.ErrStateConflict) {
				t.Errorf("call %d: got error %v", i, err)
			}
		}
		if took := time.Since(begun); took > within+time.Second {
			t.Errorf("it took %v", took)
		}
	}
	server.Freeze()
	fails(100 * time.Millisecond)
	begun := time.Now()
	if _, _, err := s.LoadState(t.Context(), key); err == nil || time.Since(begun) > callTimeout+time.Second {
		t.Errorf("got error %v after %v", err, time.Since(begun))
	}
	server.Thaw()
	server.Kill()
	fails(5 * time.Second)
	restart(t, server)
	wait.Until(t, "the state", func() bool {
		text, at, err := s.LoadState(t.Context(), key)
		return err == nil && string(text) == "1" && at == revision
	})
}
