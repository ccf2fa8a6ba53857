//go:build servers

package nomad

import (
	"net/http"
	"testing"

	consulapi "github.com/hashicorp/consul/api"

	"github.com/topsail-serving/topsail/test/require"
)

// instances are how many of each role run for the test of the policies.
var instances = map[string]int{"gateway": 1, "scheduler": 2, "web": 1, "stream": 1}

// TestPolicies runs the commands of the README, and then what each role does and
// must not do, with its plain tokens and with the identities of its job.
func TestPolicies(t *testing.T) {
	c := shared
	c.granted.Do(func() { c.readme(t, "policies/README.md", "policies", "") })
	identities := variables{"program": self(t), "consul_identity": true, "nomad_addr": "unix://${NOMAD_SECRETS_DIR}/api.sock"}
	c.run(t, "gateway", variables{"program": self(t), "consul_identity": true, "port": 0, "shutdown_delay": "0s"})
	c.run(t, "scheduler", with(identities, variables{"per_node": 2}))
	c.run(t, "web", with(identities, variables{"count": 1, "port": 0}))
	c.run(t, "stream", variables{"program": self(t), "consul_identity": true})
	c.runLedger(t)
	for service, n := range instances {
		c.ready(t, "topsail-"+service, n)
	}

	for name, calls := range map[string][]call{"gateway": gatewayCalls, "scheduler": schedulerCalls, "web": webCalls, "stream": gatewayCalls} {
		t.Run(name+"/tokens", func(t *testing.T) { check(t, c.withTokens(t, name), calls) })
		t.Run(name+"/identities", func(t *testing.T) { check(t, c.withIdentities(t, name), calls) })
	}
	if t.Failed() {
		for service := range instances {
			t.Log(c.events("topsail-" + service))
		}
		t.Log(c.nomad.LogTail(), c.client.LogTail(), c.consul.LogTail())
	}
}

// check makes every call, those that must be refused as well.
func check(t *testing.T, as role, calls []call) {
	for _, call := range calls {
		switch err := call.do(as); {
		case call.refused && !isRefused(err):
			t.Errorf("%s is not refused: %v", call.name, err)
		case !call.refused && err != nil:
			t.Errorf("%s: %v", call.name, err)
		}
	}
}

// withTokens takes the tokens that the README made for a role; there is none of
// Nomad for gateways and streams.
func (c *cluster) withTokens(t *testing.T, name string) role {
	t.Helper()
	acl := c.consulAs(t, c.consulRoot).ACL()
	tokens, _, err := acl.TokenList(nil)
	require.NoError(t, err)
	var consul, nomad string
	for _, stub := range tokens {
		if stub.Description == "topsail-"+name {
			token, _, err := acl.TokenRead(stub.AccessorID, nil)
			require.NoError(t, err)
			consul = token.SecretID
		}
	}
	root := c.root.ACLTokens()
	stubs, _, err := root.List(nil)
	require.NoError(t, err)
	for _, stub := range stubs {
		if stub.Name == "topsail-"+name {
			token, _, err := root.Info(stub.AccessorID, nil)
			require.NoError(t, err)
			nomad = token.SecretID
		}
	}
	return role{c.consulAs(t, consul), c.nomadAs(t, nomad)}
}

// withIdentities takes what the job of a role was given, and its way to Nomad.
func (c *cluster) withIdentities(t *testing.T, name string) role {
	t.Helper()
	service := c.ready(t, "topsail-"+name, instances[name])[0].Service
	env := environment(t, http.DefaultClient, "http://"+service.Meta["ops_addr"])
	without := name == "gateway" || name == "stream"
	if env["CONSUL_HTTP_TOKEN"] == "" || (env["NOMAD_TOKEN"] == "") != without {
		t.Fatalf("it has the Consul token %q and the Nomad token %q", env["CONSUL_HTTP_TOKEN"], env["NOMAD_TOKEN"])
	}
	as := role{c.consulAs(t, env["CONSUL_HTTP_TOKEN"]), c.nomadAs(t, "")}
	if !without {
		as.nomad = nomadAt(t, env["NOMAD_ADDR"], env["NOMAD_TOKEN"])
	}
	return as
}

// runLedger runs what belongs to others: a service, and jobs in both namespaces.
func (c *cluster) runLedger(t *testing.T) {
	t.Helper()
	require.NoError(t, c.consulAs(t, c.consulRoot).Agent().ServiceRegister(&consulapi.AgentServiceRegistration{Name: "ledger", Port: 1}))
	root := role{nomad: c.root}
	for _, namespace := range []string{namespace, "default"} {
		require.NoError(t, registerJob(namespace)(root))
	}
}
