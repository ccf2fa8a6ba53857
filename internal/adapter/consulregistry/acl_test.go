//go:build servers

package consulregistry

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/hashicorp/consul/api"

	"github.com/topsail-serving/topsail/test/require"
	"github.com/topsail-serving/topsail/test/servers"
	"github.com/topsail-serving/topsail/test/wait"
)

const management = "5d3a1c9e-8a52-4c0b-9d0e-0f6f5a3b7c11"

// acl is a Consul with access control.
type acl struct {
	*testing.T
	server *servers.Server
	admin  *api.Client
}

func newACL(t *testing.T) *acl {
	server, err := launch(t.TempDir(), servers.ConsulOptions{ACL: management})
	require.NoError(t, err)
	t.Cleanup(server.Kill)
	config := api.DefaultConfig()
	config.Address, config.Token = server.Addr, management
	admin, err := api.NewClient(config)
	require.NoError(t, err)
	// It answers before its own node is registered, without which there are no sessions.
	wait.Until(t, "a session", func() bool {
		id, _, err := admin.Session().CreateNoChecks(nil, nil)
		if err == nil {
			_, err = admin.Session().Destroy(id, nil)
		}
		return err == nil
	})
	return &acl{t, server, admin}
}

// token makes a token with these rights, and writes it to a file.
func (a *acl) token(file, rules string) *api.ACLToken {
	a.Helper()
	policy, _, err := a.admin.ACL().PolicyCreate(&api.ACLPolicy{Name: fresh(a.T), Rules: rules}, nil)
	require.NoError(a, err)
	token, _, err := a.admin.ACL().TokenCreate(&api.ACLToken{Policies: []*api.ACLLink{{ID: policy.ID}}}, nil)
	require.NoError(a, err)
	require.NoError(a, os.WriteFile(file, []byte(token.SecretID+"\n"), 0o600))
	return token
}

func (a *acl) client(file string) *Client {
	a.Helper()
	c, err := Connect(Options{Addr: a.server.Addr, TokenFile: file})
	require.NoError(a, err)
	return c
}

// TestLeastPrivilege has the rights that the package's doc names, and no others.
// The token of a watch is taken from it and replaced, which costs no replica.
func TestLeastPrivilege(t *testing.T) {
	t.Parallel()
	a, file := newACL(t), filepath.Join(t.TempDir(), "token")
	const reads = `service_prefix "topsail-" { policy = "read" } node_prefix "" { policy = "read" }`
	first := a.token(file, reads)
	r, err := Open(Config{Client: a.client(file), Hold: time.Minute})
	require.NoError(t, err)
	s := &service{r, t, a.admin.Agent(), "topsail-sidecar"}
	s.register("a", "b")
	w := s.watch()
	w.until("a", "b")
	if _, err := a.admin.ACL().TokenDelete(first.AccessorID, nil); err != nil {
		t.Fatal(err)
	}
	s.register("c")
	a.token(file, reads)
	stays(t, w.until("a", "b", "c"), "a", "b")

	a.token(file, `key_prefix "topsail/" { policy = "write" } session_prefix "" { policy = "write" }`)
	lock := a.client(file).Lock("topsail/scheduler/leader")
	if token, err := lock.Acquire(t.Context(), "here", 10*time.Second); err != nil || token == 0 {
		t.Errorf("got token %d and error %v", token, err)
	}
	if held, err := lock.Renew(t.Context()); err != nil || !held {
		t.Errorf("held %v, error %v", held, err)
	}
	if err := lock.Release(t.Context()); err != nil {
		t.Error(err)
	}
}
