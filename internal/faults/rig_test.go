package faults

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	consul "github.com/hashicorp/consul/api"
	nomad "github.com/hashicorp/nomad/api"

	"topsail/internal/servers"
	"topsail/jobs"
	"topsail/serving"
)

// outage is how long a server is away: longer than every time to live.
var outage = flag.Duration("outage", 20*time.Second, "how long a server is away")

// world is the cluster that all faults happen to.
var world *rig

func TestMain(m *testing.M) {
	flag.Parse()
	code, err := runAll(m)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

func runAll(m *testing.M) (code int, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), 3*time.Minute)
	defer cancel()
	world, err = newRig(ctx)
	if world != nil {
		defer world.close()
	}
	if err != nil {
		return 1, err
	}
	code = m.Run()
	world.printReports()
	return code, nil
}

// rig is a cluster: the servers, Topsail as Nomad jobs, and the programs.
type rig struct {
	*servers.Cluster
	dir     string
	topsail string // the program
	gosum   string // a container that answers the sum of its input
	nomad   *nomad.Client
	consul  *consul.Client
	env     []string // tells programs where the servers are
	liar    *liar    // between the gateways and Consul
	lies    net.Listener

	mu      sync.Mutex // guards the following
	edges   []string   // addresses of gateways, as Consul said last
	reports []report
}

const (
	slo      = 250 * time.Millisecond
	replicas = 2
)

// newRig starts everything, and waits until the app answers through every gateway.
func newRig(ctx context.Context) (*rig, error) {
	dir, err := os.MkdirTemp("", "topsail-faults")
	if err != nil {
		return nil, err
	}
	r := &rig{dir: dir, topsail: filepath.Join(dir, "topsail"), gosum: filepath.Join(dir, "gosum")}
	for program, pkg := range map[string]string{r.topsail: "topsail/cmd/topsail", r.gosum: "topsail/examples/gosum"} {
		if out, err := exec.CommandContext(ctx, "go", "build", "-o", program, pkg).CombinedOutput(); err != nil {
			return r, fmt.Errorf("go build %s: %w\n%s", pkg, err, out)
		}
	}
	ports, err := servers.FreePortsForAll()
	if err != nil {
		return r, err
	}
	if r.Cluster, err = servers.NewCluster(servers.Options{Dir: dir, Ports: ports, Clients: 2}); err != nil {
		return r, err
	}
	if err := r.Cluster.Start(ctx); err != nil {
		return r, err
	}
	r.env = []string{
		"CONSUL_HTTP_ADDR=" + r.Consul.Addr, "NOMAD_ADDR=http://" + r.Nomad.Addr,
		"TOPSAIL_REDIS_ADDRS=" + r.Redis.Addr, "TOPSAIL_INFLUXDB_URL=http://" + r.InfluxDB.Addr,
		"TOPSAIL_DATA_DIR=" + filepath.Join(dir, "cli"),
	}
	r.liar = newLiar(r.Agents[0].Addr)
	if r.lies, err = r.liar.listen(); err != nil {
		return r, err
	}
	if r.nomad, err = nomad.NewClient(&nomad.Config{Address: "http://" + r.Nomad.Addr}); err != nil {
		return r, err
	}
	if r.consul, err = consul.NewClient(&consul.Config{Address: r.Consul.Addr}); err != nil {
		return r, err
	}
	for _, job := range []string{"scheduler", "gateway"} {
		if err := r.runJob(ctx, job, r.topsail); err != nil {
			return r, err
		}
	}
	if err := r.apply(ctx, r.catalog(replicas)); err != nil {
		return r, err
	}
	return r, r.await(ctx, r.whole)
}

func (r *rig) close() {
	if r.nomad != nil {
		jobs, _, err := r.nomad.Jobs().List(nil)
		if err == nil {
			slices.SortFunc(jobs, func(a, b *nomad.JobListStub) int { return -strings.Compare(a.ID, b.ID) })
			for _, job := range jobs {
				_, _, _ = r.nomad.Jobs().Deregister(job.ID, true, nil) // the clients end what is left
			}
		}
		deadline := time.Now().Add(20 * time.Second)
		for len(tasks(r.dir)) > 0 && time.Now().Before(deadline) {
			time.Sleep(100 * time.Millisecond)
		}
	}
	if r.Cluster != nil {
		r.Cluster.Stop()
	}
	for _, t := range tasks(r.dir) {
		_ = exec.Command("kill", "-9", fmt.Sprint(t.pid)).Run()
	}
	_ = exec.Command("sh", "-c", "grep -o '"+r.dir+"[^ ]*' /proc/mounts | xargs -r umount -l").Run()
	if r.lies != nil {
		r.lies.Close()
	}
	os.RemoveAll(r.dir)
}

// runJob runs one of Topsail's own jobs with a program.
func (r *rig) runJob(ctx context.Context, name, program string) error {
	binary, err := servers.Binary("nomad")
	if err != nil {
		return err
	}
	args := []string{
		"job", "run", "-detach", "-var", "program=" + program, "-var", fmt.Sprintf("redis_addrs=[%q]", r.Redis.Addr),
		"-var", "influxdb_url=http://" + r.InfluxDB.Addr,
	}
	switch name {
	case "gateway":
		args = append(args, "-var", "count=2", "-var", "port=0", "-var", "shutdown_delay=2s", "-var", "consul_addr=http://"+r.lies.Addr().String())
	case "scheduler":
		args = append(args, "-var", "nomad_addr=http://"+r.Nomad.Addr, "-var", "consul_addr=http://"+r.Agents[1].Addr)
	}
	return r.command(ctx, binary, append(args, filepath.Join("..", "..", "nomad", "jobs", name+".nomad.hcl"))...)
}

func (r *rig) command(ctx context.Context, name string, args ...string) error {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Env = append(os.Environ(), r.env...)
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%s %v: %w\n%s", filepath.Base(name), args, err, out)
	}
	return nil
}

// catalog is the app that is asked, with one model in so many replicas.
func (r *rig) catalog(replicas int) string { return r.catalogOf("1", replicas) }

func (r *rig) catalogOf(version string, replicas int) string {
	return fmt.Sprintf(`
[[app]]
name = "sum"
input_type = "doubles"
default_output = "-1"
latency_slo_micros = %d
models = ["gosum"]
cache = { off = true }

[[model]]
name = "gosum"
version = %q
input_type = "doubles"
command = [%q]
replicas = %d
`, slo.Microseconds(), version, r.gosum, replicas)
}

// apply brings a catalog into the cluster.
func (r *rig) apply(ctx context.Context, catalog string) error {
	file := filepath.Join(r.dir, "topsail.toml")
	if err := os.WriteFile(file, []byte(catalog), 0o600); err != nil {
		return err
	}
	return r.command(ctx, r.topsail, "apply", "--config", file)
}

// model is the Nomad job of a version of the model.
func (r *rig) model(version string) string {
	return jobs.ID(serving.ModelID{Model: "gosum", Version: version})
}

// gateways are the addresses of those that Consul says are well; the last ones it
// said while it is away.
func (r *rig) gateways() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.edges
}

// followGateways keeps the list of gateways, as a load balancer does.
func (r *rig) followGateways(ctx context.Context) {
	for ctx.Err() == nil {
		asking, cancel := context.WithTimeout(ctx, time.Second)
		entries, _, err := r.consul.Health().Service("topsail-gateway", "", true, (&consul.QueryOptions{}).WithContext(asking))
		cancel()
		if err == nil && len(entries) > 0 {
			var list []string
			for _, e := range entries {
				list = append(list, fmt.Sprintf("%s:%d", e.Service.Address, e.Service.Port))
			}
			r.mu.Lock()
			r.edges = list
			r.mu.Unlock()
		}
		select {
		case <-time.After(100 * time.Millisecond):
		case <-ctx.Done():
		}
	}
}

// whole says what is missing from the cluster: two gateways that answer, all
// replicas ready, two schedulers.
func (r *rig) whole(ctx context.Context) error {
	for service, want := range map[string]int{"topsail-gateway": 2, "topsail-sidecar": replicas, "topsail-scheduler": 2} {
		entries, _, err := r.consul.Health().Service(service, "", true, (&consul.QueryOptions{}).WithContext(ctx))
		if err != nil {
			return err
		}
		if len(entries) != want {
			return fmt.Errorf("%d of %d instances of %s are well", len(entries), want, service)
		}
	}
	return r.twoGateways(ctx)
}

// twoGateways says why there are not two gateways that give predictions, or nil.
func (r *rig) twoGateways(ctx context.Context) error {
	entries, _, err := r.consul.Health().Service("topsail-gateway", "", true, (&consul.QueryOptions{}).WithContext(ctx))
	if err != nil || len(entries) != 2 {
		return fmt.Errorf("%d of 2 gateways are well: %w", len(entries), errors.Join(err, errDefault))
	}
	for _, e := range entries {
		addr := fmt.Sprintf("%s:%d", e.Service.Address, e.Service.Port)
		if cause, err := ask(plain, addr, "sum", 1); err != nil || cause != "" {
			return fmt.Errorf("gateway %s: %s %w", addr, cause, errors.Join(err, errDefault))
		}
	}
	return nil
}

var errDefault = errors.New("no prediction")

// await waits for a condition, and says what it lacked at last.
func (r *rig) await(ctx context.Context, good func(context.Context) error) error {
	for {
		asking, cancel := context.WithTimeout(ctx, 3*time.Second)
		err := good(asking)
		cancel()
		if err == nil {
			return nil
		}
		select {
		case <-time.After(100 * time.Millisecond):
		case <-ctx.Done():
			return errors.Join(context.Cause(ctx), err)
		}
	}
}

func (r *rig) printReports() {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, one := range r.reports {
		fmt.Println(one)
	}
}
