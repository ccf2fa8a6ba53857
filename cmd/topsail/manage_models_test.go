//go:build system

package main

import (
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"testing"

	"github.com/topsail-serving/topsail/stream/models"
	"github.com/topsail-serving/topsail/test/brokers"
	"github.com/topsail-serving/topsail/test/require"
	"github.com/topsail-serving/topsail/test/wait"
	"github.com/topsail-serving/topsail/web/api"
)

// broker is the cluster's Redis, with streams.
func (c *managedCluster) broker(t *testing.T) *streamBroker {
	return &streamBroker{
		server: c.Redis, lines: fmt.Sprintf("broker = 'redis'\naddrs = [%q]\n", c.Redis.Addr), streamClient: brokers.RedisAt(c.Redis.Addr),
	}
}

// streamsModels has a model come as a message, run as a job of Nomad and answer; and the
// next version of it, when an operator lets it.
func (c *managedCluster) streamsModels(t *testing.T) {
	o, b, dir := c.plain.of(t), c.broker(t), t.TempDir()
	o.newKey(dir, "streams", "--role", "deployer")
	lines := fmt.Sprintf("api = %q\nkey_file = %q\n", o.setting("TOPSAIL_ADMIN_URL"), filepath.Join(dir, "streams.key"))
	file := filepath.Join(dir, "streams.toml")
	require.NoError(t, os.WriteFile(file, []byte(modelStream(b, lines)), 0o600))
	version := func(name string, n int) *models.Model {
		m := adder(t, name, n)
		m.Name, m.Apps = "streamed", []string{"streamed"}
		return m
	}
	app := *sumApp
	app.Name = "streamed"
	b.updates(t, models.Update{UUID: "a", Model: version("1", 10)}, models.Update{UUID: "app", Ensemble: &app})
	c.run("stream", "models", "--config", file, "--streams-name", "models")
	o.answers("streamed", "[1, 2]", "13.0")
	if job := get[api.Job](o, "/models/streamed/versions/1/job"); job.Kind != "nomad" {
		t.Errorf("the job is\n%s", job.Text)
	}

	o.do("stream", "suspend", "models", "--reason", "an audit")
	b.updates(t, models.Update{UUID: "b", Model: version("2", 100)})
	o.do("stream", "resume", "models")
	o.answers("streamed", "[1, 2]", "103.0")
	wait.Until(t, "end of the updates", func() bool { return len(b.acknowledged(t))+len(b.refusals(t, "refused")) == 3 })
	want := map[string][]string{"a": {models.Deployed}, "app": {models.Configured}, "b": {models.Deployed}}
	if got := b.acknowledged(t); !reflect.DeepEqual(got, want) {
		t.Errorf("the acknowledgements are %v, and the dead letters %v", got, b.refusals(t, "refused"))
	}
	c.end("models")
	o.do("app", "delete", "streamed", "--yes")
	o.do("model", "delete", "streamed", "--yes")
	o.do("stream", "delete", "models", "--yes")
	o.do("key", "revoke", "streams", "--yes")
}
