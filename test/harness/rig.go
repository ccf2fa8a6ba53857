package harness

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	consul "github.com/hashicorp/consul/api"
	nomad "github.com/hashicorp/nomad/api"

	"github.com/topsail-serving/topsail/internal/retry"
	"github.com/topsail-serving/topsail/jobs"
	"github.com/topsail-serving/topsail/serving"
	"github.com/topsail-serving/topsail/test/servers"
)

// Rig is a cluster: the servers, Topsail as Nomad jobs, and the programs.
type Rig struct {
	*servers.Cluster
	SLO      time.Duration // of the app
	Dir      string
	Program  string // topsail
	Gosum    string // a container that answers the sum of its input
	Jobs     *nomad.Client
	Services *consul.Client
	env      []string // tells programs where the servers are
	Liar     *Liar    // between the gateways and Consul
	lies     net.Listener

	mu    sync.Mutex // guards the following
	edges []string   // addresses of gateways, as Consul said last
	noted []event    // when that changed, and what was awaited
}

// Replicas is how many the model has.
const Replicas = 2

// New starts everything, and waits until the app answers through every gateway. A Nomad client whose heartbeat is later
// than grace is lost; 0 is servers' default.
func New(ctx context.Context, slo, grace time.Duration) (*Rig, error) {
	dir, err := os.MkdirTemp("", "topsail-faults")
	if err != nil {
		return nil, err
	}
	r := &Rig{SLO: slo, Dir: dir, Program: filepath.Join(dir, "topsail"), Gosum: filepath.Join(dir, "gosum")}
	for program, pkg := range map[string]string{r.Program: "github.com/topsail-serving/topsail/cmd/topsail", r.Gosum: "github.com/topsail-serving/topsail/examples/gosum"} {
		if out, err := exec.CommandContext(ctx, "go", "build", "-o", program, pkg).CombinedOutput(); err != nil {
			return r, fmt.Errorf("go build %s: %w\n%s", pkg, err, out)
		}
	}
	ports, err := servers.FreePortsForAll()
	if err != nil {
		return r, err
	}
	if r.Cluster, err = servers.NewCluster(servers.Options{Dir: dir, Ports: ports, Clients: 2, HeartbeatGrace: grace}); err != nil {
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
	r.Liar = newLiar(r.Agents[0].Addr)
	if r.lies, err = r.Liar.listen(); err != nil {
		return r, err
	}
	if r.Jobs, err = nomad.NewClient(&nomad.Config{Address: "http://" + r.Nomad.Addr}); err != nil {
		return r, err
	}
	if r.Services, err = consul.NewClient(&consul.Config{Address: r.Consul.Addr}); err != nil {
		return r, err
	}
	for _, job := range []string{"scheduler", "gateway"} {
		if err := r.RunJob(ctx, job, r.Program); err != nil {
			return r, err
		}
	}
	if err := r.Apply(ctx, r.Catalog(Replicas)); err != nil {
		return r, err
	}
	return r, r.Await(ctx, r.Whole)
}

// Close stops everything and leaves nothing behind.
func (r *Rig) Close() {
	if r.Jobs != nil {
		r.stopJobs()
	}
	if r.Cluster != nil {
		r.Cluster.Stop()
	}
	servers.Sweep(r.Dir)
	if r.lies != nil {
		r.lies.Close()
	}
	os.RemoveAll(r.Dir)
}

// stopJobs stops all jobs as far as Nomad answers, Topsail's own before those that
// the scheduler would start again.
func (r *Rig) stopJobs() {
	jobs, _, err := r.Jobs.Jobs().List(nil)
	if err != nil {
		return
	}
	slices.SortFunc(jobs, func(a, b *nomad.JobListStub) int { return strings.Compare(b.ID, a.ID) })
	for _, job := range jobs {
		_, _, _ = r.Jobs.Jobs().Deregister(job.ID, true, nil) // Sweep ends what is left
	}
	for deadline := time.Now().Add(5 * time.Second); len(Tasks(r.Dir)) > 0 && time.Now().Before(deadline); {
		time.Sleep(100 * time.Millisecond)
	}
}

// RunJob runs one of Topsail's own jobs with a program.
func (r *Rig) RunJob(ctx context.Context, name, program string) error {
	binary, err := servers.Binary("nomad")
	if err != nil {
		return err
	}
	root, err := servers.Root()
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
	return r.Command(ctx, binary, append(args, filepath.Join(root, "nomad", "jobs", name+".nomad.hcl"))...)
}

// Command runs a program in the environment of the cluster.
func (r *Rig) Command(ctx context.Context, name string, args ...string) error {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Env = append(os.Environ(), r.env...)
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%s %v: %w\n%s", filepath.Base(name), args, err, out)
	}
	return nil
}

// Catalog is the app that is asked, with one model in so many replicas.
func (r *Rig) Catalog(replicas int) string { return r.CatalogOf(replicas, "1", "1") }

// CatalogOf is that with several versions of the model, of which one is current.
func (r *Rig) CatalogOf(replicas int, current string, versions ...string) string {
	var b strings.Builder
	fmt.Fprintf(&b, `
[[app]]
name = "sum"
input_type = "doubles"
default_output = "-1"
latency_slo_micros = %d
models = ["gosum"]
cache = { off = true }
`, r.SLO.Microseconds())
	for _, version := range versions {
		fmt.Fprintf(&b, `
[[model]]
name = "gosum"
version = %q
current = %t
input_type = "doubles"
command = [%q]
replicas = %d
`, version, version == current, r.Gosum, replicas)
	}
	return b.String()
}

// Apply brings a catalog into the cluster.
func (r *Rig) Apply(ctx context.Context, catalog string) error {
	file := filepath.Join(r.Dir, "topsail.toml")
	if err := os.WriteFile(file, []byte(catalog), 0o600); err != nil {
		return err
	}
	return r.Command(ctx, r.Program, "seed", "--config", file)
}

// Model is the Nomad job of a version of the model.
func (r *Rig) Model(version string) string {
	return jobs.ID(serving.ModelID{Model: "gosum", Version: version})
}

// Gateways are the addresses of those that Consul says are well; the last ones it said while it is
// unavailable.
func (r *Rig) Gateways() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.edges
}

// FollowGateways keeps the list of gateways, as a load balancer does.
func (r *Rig) FollowGateways(ctx context.Context) {
	for ctx.Err() == nil {
		asking, cancel := context.WithTimeout(ctx, time.Second)
		entries, err := r.well(asking, "topsail-gateway")
		cancel()
		if err == nil && len(entries) > 0 {
			var list []string
			for _, e := range entries {
				list = append(list, fmt.Sprintf("%s:%d", e.Service.Address, e.Service.Port))
			}
			slices.Sort(list)
			r.mu.Lock()
			changed := !slices.Equal(list, r.edges)
			r.edges = list
			r.mu.Unlock()
			if changed {
				r.note("gateways are " + strings.Join(list, ", "))
			}
		}
		retry.Sleep(ctx, 100*time.Millisecond)
	}
}

// well is the instances of a service that pass their checks. The read is consistent:
// without that a Consul which has just started answers from its log while it reads
// it again, with instances that left long ago.
func (r *Rig) well(ctx context.Context, service string) ([]*consul.ServiceEntry, error) {
	entries, _, err := r.Services.Health().Service(service, "", true, (&consul.QueryOptions{RequireConsistent: true}).WithContext(ctx))
	return entries, err
}

// Whole says what is missing from the cluster: two gateways that answer, all
// replicas ready, two schedulers.
func (r *Rig) Whole(ctx context.Context) error {
	for service, want := range map[string]int{"topsail-gateway": 2, "topsail-sidecar": Replicas, "topsail-scheduler": 2} {
		entries, err := r.well(ctx, service)
		if err != nil {
			return err
		}
		entries = slices.DeleteFunc(entries, func(e *consul.ServiceEntry) bool {
			model := e.Service.Meta["model"]
			return model != "" && model != "gosum" // of another test
		})
		if len(entries) != want {
			return fmt.Errorf("%d of %d instances of %s are well", len(entries), want, service)
		}
	}
	return r.TwoGateways(ctx)
}

// TwoGateways says why there are not two gateways that give predictions, or nil.
func (r *Rig) TwoGateways(ctx context.Context) error {
	entries, err := r.well(ctx, "topsail-gateway")
	if err != nil || len(entries) != 2 {
		return fmt.Errorf("%d of 2 gateways are well: %w", len(entries), errors.Join(err, ErrDefault))
	}
	for _, e := range entries {
		addr := fmt.Sprintf("%s:%d", e.Service.Address, e.Service.Port)
		if cause, err := Ask(addr, "sum", 1); err != nil || cause != "" {
			return fmt.Errorf("gateway %s: %s %w", addr, cause, errors.Join(err, ErrDefault))
		}
	}
	return nil
}

// ErrDefault stands for an answer that is not a prediction.
var ErrDefault = errors.New("no prediction")

// note keeps what happened for Story, once while it goes on.
func (r *Rig) note(text string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if last := len(r.noted) - 1; last < 0 || r.noted[last].text != text {
		r.noted = append(r.noted, event{time.Now(), text})
	}
}

// Await waits for a condition, and says what it lacked at last.
func (r *Rig) Await(ctx context.Context, good func(context.Context) error) error {
	for {
		asking, cancel := context.WithTimeout(ctx, 3*time.Second)
		err := good(asking)
		cancel()
		if err == nil {
			return nil
		}
		r.note(err.Error())
		if !retry.Sleep(ctx, 100*time.Millisecond) {
			return errors.Join(context.Cause(ctx), err)
		}
	}
}
