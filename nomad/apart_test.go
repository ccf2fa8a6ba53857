//go:build servers

package nomad

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	nomadapi "github.com/hashicorp/nomad/api"

	"github.com/topsail-serving/topsail/test/require"
	"github.com/topsail-serving/topsail/test/servers"
)

// nodes are a Nomad with three clients and without Consul.
type nodes struct {
	*testing.T
	api *nomadapi.Client
	ids []string
}

func startNodes(t *testing.T) *nodes {
	t.Helper()
	dir, err := os.MkdirTemp("", "n") // short: the path of a task's socket has at most 107 bytes
	require.NoError(t, err)
	first, err := servers.FreePorts(640)
	require.NoError(t, err)
	server, err := servers.NomadServer(filepath.Join(dir, "s"), first, servers.NomadOptions{})
	all := []*servers.Server{server}
	for i := range 3 {
		client, failed := servers.NomadClient(fmt.Sprint("c", i), filepath.Join(dir, fmt.Sprint("c", i)), first+10*(i+1), first+40+200*i, first, servers.NomadOptions{})
		all, err = append(all, client), errors.Join(err, failed)
	}
	require.NoError(t, err)
	t.Cleanup(func() {
		for _, s := range slices.Backward(all) {
			s.Stop()
		}
		servers.Sweep(dir)
		os.RemoveAll(dir)
	})
	for _, s := range all {
		require.NoError(t, s.Start(t.Context()))
	}
	n := &nodes{T: t}
	if n.api, err = nomadapi.NewClient(&nomadapi.Config{Address: "http://" + server.Addr}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(n.api.Close)
	n.until("three nodes", func() error {
		list, _, err := n.api.Nodes().List(nil)
		n.ids = nil
		for _, one := range list {
			if one.Status == nomadapi.NodeStatusReady {
				n.ids = append(n.ids, one.ID)
			}
		}
		if len(n.ids) != 3 {
			return errors.Join(err, fmt.Errorf("%d are ready", len(n.ids)))
		}
		return nil
	})
	return n
}

func (n *nodes) until(what string, good func() error) {
	n.Helper()
	if err := poll(n.Context(), time.Minute, good); err != nil {
		n.Fatalf("%s: %v", what, err)
	}
}

// run runs a job of Topsail, with the test's own binary as the program.
func (n *nodes) run(role string, v variables) {
	n.Helper()
	text, err := Job(role)
	require.NoError(n, err)
	v = with(v, variables{"program": self(n.T), "service_provider": "nomad", "port": 0})
	if role == "scheduler" {
		delete(v, "port")
	}
	job, err := n.api.Jobs().ParseHCLOpts(&nomadapi.JobsParseRequest{JobHCL: text, Variables: v.hcl(n.T), Canonicalize: true})
	require.NoError(n, err)
	if _, _, err := n.api.Jobs().Register(job, nil); err != nil {
		n.Fatal(err)
	}
}

// on counts the processes of a job on each node that has some.
func (n *nodes) on(role string) (map[string]int, error) {
	allocs, _, err := n.api.Jobs().Allocations("topsail-"+role, false, nil)
	counts := map[string]int{}
	for _, one := range allocs {
		if one.ClientStatus == nomadapi.AllocClientStatusRunning && one.DesiredStatus == nomadapi.AllocDesiredStatusRun {
			counts[one.NodeID]++
		}
	}
	return counts, err
}

// apart waits until each role has one process on each of some nodes, and none elsewhere.
func (n *nodes) apart(roles []string, want int, without ...string) {
	n.Helper()
	for _, role := range roles {
		n.until(fmt.Sprintf("%d processes of %s on as many nodes", want, role), func() error {
			counts, err := n.on(role)
			for node, count := range counts {
				if count > 1 {
					n.Fatalf("%d processes of %s are on node %s", count, role, node)
				}
			}
			if away := slices.ContainsFunc(without, func(id string) bool { return counts[id] > 0 }); err != nil || away || len(counts) != want {
				return errors.Join(err, fmt.Errorf("they are on %v", counts))
			}
			return nil
		})
	}
}

// drain takes a node away as before maintenance, and waits until nothing is on it.
func (n *nodes) drain(id string) {
	n.Helper()
	spec := &nomadapi.DrainSpec{Deadline: time.Minute}
	if _, err := n.api.Nodes().UpdateDrainOpts(id, &nomadapi.DrainOptions{DrainSpec: spec}, nil); err != nil {
		n.Fatal(err)
	}
	n.until("end of the drain", func() error {
		node, _, err := n.api.Nodes().Info(id, nil)
		if err == nil && node.DrainStrategy != nil {
			err = errors.New("it goes on")
		}
		return err
	})
}

// TestDrainKeepsApart: with three nodes, what leaves a drained one goes to the node that has
// none. With two it waits, and is apart again when the other is back. Nobody helps.
func TestDrainKeepsApart(t *testing.T) {
	n := startNodes(t)
	roles := []string{"gateway", "scheduler", "web"}
	for _, role := range roles {
		n.run(role, variables{"count": 2})
	}
	n.apart(roles, 2)
	counts, err := n.on("gateway")
	require.NoError(t, err)
	first := slices.Sorted(maps.Keys(counts))[0]
	n.drain(first)
	n.apart(roles, 2, first) // on both others: of all roles

	second := n.ids[(slices.Index(n.ids, first)+1)%3]
	n.drain(second)
	n.apart(roles, 1, first, second)
	if _, err := n.api.Nodes().ToggleEligibility(second, true, nil); err != nil {
		t.Fatal(err)
	}
	n.apart(roles, 2, first)

	n.run("gateway", variables{"count": 2, "env": map[string]string{"TOPSAIL_LOG_LEVEL": "debug"}}) // as many as there are nodes
	n.until("gateways of the next version", func() error {
		list, _, err := n.api.Jobs().Deployments("topsail-gateway", false, nil)
		if err == nil && !slices.ContainsFunc(list, func(d *nomadapi.Deployment) bool {
			return d.JobVersion == 1 && d.Status == nomadapi.DeploymentStatusSuccessful
		}) {
			err = errors.New("they are not deployed")
		}
		return err
	})
	n.apart(roles, 2, first)
}
