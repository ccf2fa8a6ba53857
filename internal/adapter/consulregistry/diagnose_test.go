//go:build servers

package consulregistry

import (
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func TestLeader(t *testing.T) {
	t.Parallel()
	if leader, err := connect(t, shared.Addr).Leader(t.Context()); err != nil || !strings.Contains(leader, ":") {
		t.Errorf("got %q, error %v", leader, err)
	}
	asked := connect(t, shared.Addr)
	if ahead := asked.Ahead(); ahead != nil {
		t.Errorf("its clock is %v ahead before it answered", *ahead)
	}
	if _, err := asked.Leader(t.Context()); err != nil {
		t.Fatal(err)
	}
	if ahead := asked.Ahead(); ahead == nil || ahead.Abs() > 2*time.Second {
		t.Errorf("its clock is %v ahead of that of the same machine", ahead)
	}
	if leader, err := connect(t, "127.0.0.1:1").Leader(t.Context()); err == nil {
		t.Errorf("nobody is the leader %q", leader)
	}
}

// TestMayLock: a probe neither takes the lock nor disturbs its holder, and names what
// a token lacks.
func TestMayLock(t *testing.T) {
	t.Parallel()
	a, file := newACL(t), filepath.Join(t.TempDir(), "token")
	const key = "topsail/scheduler/leader"
	a.token(file, `key_prefix "topsail/scheduler/" { policy = "write" } session_prefix "" { policy = "write" }`)
	c := a.client(file)
	if err := c.MayLock(t.Context(), key); err != nil {
		t.Fatal(err)
	}
	if pair, _, err := a.admin.KV().Get(key, nil); err != nil || pair != nil {
		t.Errorf("the probe wrote %v, error %v", pair, err)
	}
	lock := c.Lock(key)
	if token, err := lock.Acquire(t.Context(), "here", 10*time.Second); err != nil || token == 0 {
		t.Fatalf("got token %d and error %v", token, err)
	}
	if err := c.MayLock(t.Context(), key); err != nil {
		t.Error(err)
	}
	if held, err := lock.Renew(t.Context()); err != nil || !held {
		t.Errorf("held %v after a probe, error %v", held, err)
	}
	a.token(file, `key_prefix "" { policy = "read" }`)
	err := a.client(file).MayLock(t.Context(), key)
	if err == nil || !strings.Contains(err.Error(), "session:write") || !strings.Contains(err.Error(), "key:write") {
		t.Errorf("with a token that may read: %v", err)
	}
}
