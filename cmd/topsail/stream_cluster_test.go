//go:build system

package main

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/topsail-serving/topsail/internal/adapter/redisclient"
	"github.com/topsail-serving/topsail/internal/adapter/redisstore"
	"github.com/topsail-serving/topsail/serving"
	"github.com/topsail-serving/topsail/stream/records"
	"github.com/topsail-serving/topsail/test/require"
	"github.com/topsail-serving/topsail/test/servers"
	"github.com/topsail-serving/topsail/test/wait"
)

// streamCluster is a Redis and a Consul, and the processes that serve a stream beside
// them: each can be killed. There is no Nomad: the test starts the replicas.
type streamCluster struct {
	t             *testing.T
	dir           string
	redis, consul *servers.Server
	roles         map[string]*role
}

func newStreamCluster(t *testing.T) *streamCluster {
	t.Helper()
	c := &streamCluster{t: t, dir: t.TempDir(), roles: map[string]*role{}}
	ports, err := servers.FreePorts(10)
	require.NoError(t, err)
	if c.redis, err = servers.Redis(c.dir, ports); err != nil {
		t.Fatal(err)
	}
	if c.consul, err = servers.Consul("consul", filepath.Join(c.dir, "consul"), ports+1, servers.ConsulOptions{}); err != nil {
		t.Fatal(err)
	}
	startServer(t, c.redis)
	startServer(t, c.consul)
	t.Cleanup(c.stop)
	return c
}

func (c *streamCluster) stop() {
	for name, p := range c.roles {
		if c.t.Failed() {
			said := p.out.String()
			c.t.Logf("%s has said\n%s", name, said[max(0, len(said)-6000):])
		}
		p.cmd.Process.Kill()
		<-p.exited
	}
}

// run starts a process of Topsail, or a container.
func (c *streamCluster) run(name string, env []string, argv ...string) {
	c.t.Helper()
	p := &role{exited: make(chan error, 1), cmd: exec.Command(argv[0], argv[1:]...)}
	p.cmd.Env = slices.Concat(os.Environ(), []string{"CONSUL_HTTP_ADDR=" + c.consul.Addr}, env)
	p.cmd.Stdout, p.cmd.Stderr = &p.out, &p.out
	require.NoError(c.t, p.cmd.Start())
	go func() { p.exited <- p.cmd.Wait() }()
	c.roles[name] = p
}

func (c *streamCluster) topsail(command, name string, flags ...string) {
	c.t.Helper()
	c.run(name, nil, slices.Concat([]string{
		programs.topsail, command, "--redis-addrs", c.redis.Addr, "--influxdb-url", "http://127.0.0.1:1",
		"--data-dir", filepath.Join(c.dir, name), "--ops-addr", "127.0.0.1:0", "--log-format", "json",
	}, flags)...)
}

// replica runs a sidecar with a container.
func (c *streamCluster) replica(name, version string) {
	c.t.Helper()
	port, err := servers.FreePort()
	require.NoError(c.t, err)
	containers := fmt.Sprintf("127.0.0.1:%d", port)
	model, err := json.Marshal([]*serving.Version{c.registered(version)})
	require.NoError(c.t, err)
	c.topsail("sidecar", name, "--consul-announce", "--sidecar-replica", name, "--sidecar-containers-addr", containers, "--sidecar-models", string(model))
	c.run("container of "+name, []string{"TOPSAIL_SIDECAR=" + containers, "TOPSAIL_MODEL=sum", "TOPSAIL_VERSION=" + version, "TOPSAIL_REPLICA=" + name}, programs.gosum)
}

// registered is a version as the catalog has it: with the generation that its replicas
// have to announce.
func (c *streamCluster) registered(version string) *serving.Version {
	c.t.Helper()
	store, err := redisstore.Open(c.t.Context(), redisstore.Config{Server: redisclient.Server{Addrs: []string{c.redis.Addr}}, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		c.t.Fatal(err)
	}
	defer store.Close()
	v := store.Catalog().Version(serving.ModelID{Model: "sum", Version: version})
	if v == nil {
		c.t.Fatalf("version %s is not registered", version)
	}
	return v
}

// seed writes the configuration of a version, and returns its file.
func (c *streamCluster) seed(b *streamBroker, version string) string {
	c.t.Helper()
	file := filepath.Join(c.dir, version+".toml")
	config := strings.Replace(sumConfig(c.dir, quoted(programs.gosum)), `version = "1"`, fmt.Sprintf("version = %q", version), 1) +
		streamConfig(b, "in", "out", "dead", "batch = 20\n")
	require.NoError(c.t, os.WriteFile(file, []byte(config), 0o600))
	if out, err := exec.Command(programs.topsail, "seed", "--config", file, "--redis-addrs", c.redis.Addr).CombinedOutput(); err != nil {
		c.t.Fatalf("%v\n%s", err, out)
	}
	return file
}

func (c *streamCluster) stream(name, file string) {
	c.topsail("stream", name, "--consul-announce", "--config", file, "--streams-name", name)
}

// kill ends processes as a power cut does.
func (c *streamCluster) kill(names ...string) {
	for _, name := range names {
		p := c.roles[name]
		delete(c.roles, name)
		p.cmd.Process.Kill()
		<-p.exited
	}
}

// end asks a process to stop, which it must do in the orderly way.
func (c *streamCluster) end(name string) {
	c.t.Helper()
	p := c.roles[name]
	delete(c.roles, name)
	p.cmd.Process.Signal(syscall.SIGTERM)
	select {
	case err := <-p.exited:
		if err != nil {
			c.t.Errorf("%s ended with %v:\n%s", name, err, p.out.String())
		}
	case <-time.After(patience):
		p.cmd.Process.Kill()
		c.t.Errorf("%s did not end:\n%s", name, p.out.String())
	}
}

// TestStreamsOfACluster kills in turn whatever has to do with a stream, while it is
// served: a consumer, a replica, the broker; and replaces the model. Each record gets
// its result, and no record two.
func TestStreamsOfACluster(t *testing.T) {
	onBrokers(t, func(t *testing.T, b *streamBroker) {
		c := newStreamCluster(t)
		b.create(t, "in", "out", "dead")
		file := c.seed(b, "1")
		c.replica("r1", "1")
		c.replica("r2", "1")
		c.stream("s1", file)
		c.stream("s2", file)

		each, written := 1500, 0
		if b.kafka() {
			each = 500 // a transaction takes longer than a script
		}
		// meanwhile writes records, and does something when it is half-way through with them.
		meanwhile := func(what string, do func()) {
			t.Helper()
			began := time.Now()
			if err := b.Write(t.Context(), asks("in", written, written+each)); err != nil {
				t.Fatal(err)
			}
			before := written
			written += each
			awaitSums(t, b, before+each/4)
			do()
			awaitSums(t, b, written)
			t.Logf("%s: %v", what, time.Since(began).Round(time.Millisecond))
		}
		meanwhile("nothing happens", func() {})
		meanwhile("a consumer is killed and starts again", func() { c.kill("s1"); c.stream("s1", file) })
		meanwhile("a replica is killed", func() { c.kill("r1", "container of r1") })
		meanwhile("the last replica is killed, and two others start", func() {
			c.kill("r2", "container of r2")
			c.replica("r3", "1")
			c.replica("r4", "1")
		})
		meanwhile("a consumer leaves, and comes back", func() { c.end("s2"); c.stream("s2", file) })
		meanwhile("the broker is killed, and starts again", func() {
			b.server.Kill()
			if err := b.server.Start(t.Context()); err != nil {
				t.Fatalf("%v\n%s", err, b.server.LogTail())
			}
		})
		meanwhile("the model is replaced", func() {
			file = c.seed(b, "2")
			c.replica("r5", "2")
		})
		wait.Until(t, "version 2", func() bool {
			if err := b.Write(t.Context(), asks("in", written, written+1)); err != nil {
				t.Fatal(err)
			}
			written++
			awaitSums(t, b, written)
			return b.sums(t, "out", false)[written-1].Version == "2"
		})

		if dead := b.read(t, "dead"); len(dead) > 0 {
			t.Errorf("%d dead letters, the first with %s", len(dead), dead[0].Headers)
		}
		c.end("s1")
		c.end("s2")
	})
}

// awaitSums waits for a number of results.
func awaitSums(t *testing.T, b *streamBroker, n int) map[int]records.Response {
	t.Helper()
	var all map[int]records.Response
	wait.Until(t, fmt.Sprintf("%d results", n), func() bool { all = b.sums(t, "out", false); return len(all) >= n }, func() string { return fmt.Sprint(len(all)) })
	return all
}
