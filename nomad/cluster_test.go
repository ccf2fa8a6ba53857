//go:build servers

package nomad

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	consulapi "github.com/hashicorp/consul/api"
	nomadapi "github.com/hashicorp/nomad/api"

	"github.com/topsail-serving/topsail/test/require"
	"github.com/topsail-serving/topsail/test/servers"
)

// cluster is a Consul and a Nomad with one client, both with access control.
type cluster struct {
	dir           string
	consul, nomad *servers.Server
	client        *servers.Server
	consulRoot    string // management tokens
	nomadRoot     string
	root          *nomadapi.Client // with the management token
	granted       sync.Once        // the commands of the policies' README have been run
}

// namespace is where Topsail and its models run in these tests, as the policies say.
const namespace = "topsail"

// shared is the cluster of all tests of this package.
var shared *cluster

func TestMain(m *testing.M) {
	if role, ok := standIn(); ok {
		os.Exit(runStandIn(role))
	}
	var err error
	code := 1
	if shared, err = startCluster(); err == nil {
		code = m.Run()
	}
	if err = errors.Join(err, shared.stop()); err != nil {
		fmt.Fprintln(os.Stderr, "the cluster of the tests:", err)
		code = 1
	}
	os.Exit(code)
}

// startCluster returns what it could start, for stop, even when something could not.
func startCluster() (*cluster, error) {
	dir, err := os.MkdirTemp("", "n") // short: the path of a task's socket has at most 107 bytes
	c := &cluster{dir: dir, consulRoot: "7a1c9f3e-0b52-4a57-9d5c-6a2f1f0f7b11"}
	if err != nil {
		return c, err
	}
	first, err := servers.FreePorts(220) // at once, so that those of tasks are others
	if err != nil {
		return c, err
	}
	if c.consul, err = servers.Consul("consul", filepath.Join(dir, "consul"), first, servers.ConsulOptions{ACL: c.consulRoot}); err != nil {
		return c, err
	}
	options := servers.NomadOptions{Consul: c.consul.Addr, ConsulToken: c.consulRoot, ACL: true}
	if c.nomad, err = servers.NomadServer(filepath.Join(dir, "s"), first+5, options); err != nil {
		return c, err
	}
	if c.client, err = servers.NomadClient("c", filepath.Join(dir, "c"), first+10, first+20, first+5, options); err != nil {
		return c, err
	}
	for _, s := range []*servers.Server{c.consul, c.nomad, c.client} {
		if err := s.Start(context.Background()); err != nil {
			return c, err
		}
	}
	return c, c.prepare()
}

// prepare makes the management token of Nomad and the namespace.
func (c *cluster) prepare() error {
	anonymous, err := nomadapi.NewClient(&nomadapi.Config{Address: "http://" + c.nomad.Addr})
	if err != nil {
		return err
	}
	token, _, err := anonymous.ACLTokens().Bootstrap(nil)
	if err != nil {
		return fmt.Errorf("bootstrap access control of nomad: %w", err)
	}
	c.nomadRoot, c.root = token.SecretID, anonymous
	c.root.SetSecretID(token.SecretID)
	c.root.SetNamespace(namespace)
	_, err = c.root.Namespaces().Register(&nomadapi.Namespace{Name: namespace}, nil)
	return err
}

// stop ends every job and then the servers, and removes what they wrote.
func (c *cluster) stop() error {
	var err error
	if c.root != nil {
		err = c.purgeAll()
		c.root.Close()
	}
	for _, s := range []*servers.Server{c.client, c.nomad, c.consul} {
		if s != nil {
			s.Stop()
		}
	}
	servers.Sweep(c.dir)
	return errors.Join(err, os.RemoveAll(c.dir))
}

// purgeAll ends every job and waits until their tasks are gone, and what Nomad
// mounted for them.
func (c *cluster) purgeAll() error {
	jobs, _, err := c.root.Jobs().List(&nomadapi.QueryOptions{Namespace: "*"})
	if err != nil {
		return err
	}
	for _, j := range jobs {
		if _, _, err := c.root.Jobs().Deregister(j.ID, true, &nomadapi.WriteOptions{Namespace: j.Namespace}); err != nil {
			return err
		}
	}
	return poll(context.Background(), 60*time.Second, func() error {
		left, err := filepath.Glob(filepath.Join(c.dir, "c", "data", "alloc", "*"))
		if len(left) > 0 {
			err = fmt.Errorf("%d allocations are left", len(left))
		}
		return errors.Join(err, c.root.System().GarbageCollect())
	})
}

// nomadAs asks Nomad with a token.
func (c *cluster) nomadAs(t *testing.T, token string) *nomadapi.Client {
	t.Helper()
	return nomadAt(t, "http://"+c.nomad.Addr, token)
}

func nomadAt(t *testing.T, addr, token string) *nomadapi.Client {
	t.Helper()
	client, err := nomadapi.NewClient(&nomadapi.Config{Address: addr, SecretID: token, Namespace: namespace})
	require.NoError(t, err)
	t.Cleanup(client.Close)
	return client
}

// consulAs asks Consul with a token.
func (c *cluster) consulAs(t *testing.T, token string) *consulapi.Client {
	t.Helper()
	client, err := consulapi.NewClient(&consulapi.Config{Address: c.consul.Addr, Token: token})
	require.NoError(t, err)
	return client
}

// variables are values for the variables of a job, as Nomad reads them from a file.
type variables map[string]any

func (v variables) hcl(t *testing.T) string {
	t.Helper()
	var b strings.Builder
	for name, value := range v {
		text, err := json.Marshal(value)
		require.NoError(t, err)
		fmt.Fprintf(&b, "%s = %s\n", name, strings.NewReplacer("${", "$${", "%{", "%%{").Replace(string(text)))
	}
	return b.String()
}

// parse has Nomad read the job of a role.
func (c *cluster) parse(t *testing.T, role string, v variables) (*nomadapi.Job, error) {
	t.Helper()
	text, err := Job(role)
	require.NoError(t, err)
	return c.root.Jobs().ParseHCLOpts(&nomadapi.JobsParseRequest{JobHCL: text, Variables: v.hcl(t), Canonicalize: true})
}

// poll waits until check has nothing to say against it.
func poll(ctx context.Context, within time.Duration, check func() error) error {
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	again := time.NewTicker(100 * time.Millisecond)
	defer again.Stop()
	for {
		err := check()
		if err == nil {
			return nil
		}
		select {
		case <-again.C:
		case <-ctx.Done():
			return errors.Join(ctx.Err(), err)
		}
	}
}
