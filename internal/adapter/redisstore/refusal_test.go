//go:build servers

package redisstore

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/topsail-serving/topsail/serving"
	"github.com/topsail-serving/topsail/test/journal"
	"github.com/topsail-serving/topsail/test/require"
	"github.com/topsail-serving/topsail/test/wait"
)

// TestARedisThatTakesNoWritesIsSeen has a Redis refuse writes in each of the ways that it has:
// changes and feedback are answered with the reason, the log says it once, and it ends by itself.
func TestARedisThatTakesNoWritesIsSeen(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct{ refuse, take, says string }{
		"memory":     {"CONFIG SET maxmemory 1", "CONFIG SET maxmemory 0", "redis has no memory left: raise its maxmemory"},
		"read-only":  {"REPLICAOF 127.0.0.1 1", "REPLICAOF NO ONE", "redis is read-only: set redis.addrs"},
		"replicas":   {"CONFIG SET min-replicas-to-write 1", "CONFIG SET min-replicas-to-write 0", "redis has too few replicas: bring its replicas back"},
		"permission": {"ACL SETUSER default -@write", "ACL SETUSER default +@write", "the user of redis has no permission: give it all commands"},
		"disk":       {"BGSAVE", "CONFIG SET save ", "redis cannot write to its disk: make room there"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := ownRedis(t, t.TempDir(), "--enable-protected-configs", "yes", "--save", "3600 1000000")
			operator, log := client(t, server), &journal.Journal{}
			do := func(command string) {
				var words []any
				for word := range strings.SplitSeq(command, " ") {
					words = append(words, word)
				}
				if err := operator.Do(t.Context(), words...).Err(); err != nil {
					t.Fatalf("%s: %v", command, err)
				}
			}
			cfg := configOf(server)
			cfg.Log = log.Logger()
			s := open(t, cfg)
			defer start(t, s)()
			if _, err := s.Apply(t.Context(), putApp("a"), 0); err != nil || s.Condition() != nil || !s.Writable() {
				t.Fatalf("at first: %v, %v", err, s.Condition())
			}
			if name == "disk" {
				loseFolder(t, operator)
			}
			do(test.refuse)
			if name == "disk" {
				awaitFailedSave(t, operator)
			}
			key := serving.StateKey{App: "a", Kind: "exp3"}
			for range 3 {
				_, err := s.Apply(t.Context(), putApp("b"), 0)
				_, learned := s.SwapState(t.Context(), key, 0, []byte("1"))
				for _, err := range []error{err, learned} {
					if e, ok := errors.AsType[*serving.Unwritable](err); !ok || !strings.HasPrefix(e.Error(), test.says) {
						t.Fatalf("the answer is %v", err)
					}
				}
			}
			if err := s.Condition(); s.Writable() || err == nil || !strings.Contains(err.Error(), "nothing can be written: "+test.says) {
				t.Errorf("condition %v", err)
			}
			if s.State().Away != "" || s.State().Alarm != "" {
				t.Errorf("state %+v", s.State())
			}
			if n := log.Count("redis takes no writes"); n != 1 {
				t.Errorf("%d lines", n)
			}
			do(test.take)
			wait.Until(t, "the end", s.Writable)
			if _, err := s.Apply(t.Context(), putApp("b"), 0); err != nil || s.Condition() != nil || log.Count("redis takes writes again") != 1 {
				t.Errorf("afterwards: %v, %v", err, s.Condition())
			}
		})
	}
}

// loseFolder takes the folder away that Redis saves to.
func loseFolder(t *testing.T, operator *redis.Client) {
	t.Helper()
	gone := filepath.Join(t.TempDir(), "gone")
	require.NoError(t, os.Mkdir(gone, 0o700))
	require.NoError(t, errors.Join(operator.ConfigSet(t.Context(), "dir", gone).Err(), os.Remove(gone)))
}

func awaitFailedSave(t *testing.T, operator *redis.Client) {
	t.Helper()
	wait.Until(t, "a failed save", func() bool {
		info, err := operator.Info(t.Context(), "persistence").Result()
		return err == nil && strings.Contains(info, "rdb_last_bgsave_status:err")
	})
}
