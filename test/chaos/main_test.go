//go:build faults

package chaos

import (
	"context"
	"flag"
	"fmt"
	"os"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/topsail-serving/topsail/jobs"
	"github.com/topsail-serving/topsail/serving"
	"github.com/topsail-serving/topsail/test/harness"
)

// outage is how long a server is away: longer than every time to live.
var outage = flag.Duration("outage", 20*time.Second, "how long a server is away")

// cluster is what all faults happen to.
var cluster *world

// world is a rig, and what was seen of the faults so far.
type world struct {
	*harness.Rig
	mu      sync.Mutex // guards reports
	reports []harness.Report
}

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
	ctx, cancel := context.WithTimeout(context.Background(), 8*time.Minute)
	defer cancel()
	r, err := harness.New(ctx, slo, 3*time.Second)
	if r != nil {
		defer r.Close()
	}
	if err != nil {
		return 1, err
	}
	cluster = &world{Rig: r}
	following, stop := context.WithCancel(context.Background())
	defer stop()
	go r.FollowGateways(following)
	if err := r.Apply(ctx, cluster.catalog()); err != nil {
		return 1, err
	}
	if err := r.Await(ctx, func(context.Context) error { return r.TwoGateways(ctx) }); err != nil {
		return 1, err
	}
	elastic := harness.StartLoad("elastic", elasticRate, r.Gateways)
	code = m.Run()
	elastic.End("")
	for _, one := range cluster.reports {
		fmt.Println(one)
	}
	return code, nil
}

// The elastic model's load is steady, and so is to be the number of its replicas,
// whatever breaks.
const (
	elasticRate     = 50
	elasticReplicas = 3 // 50 queries a second are 2.4 times 70 % of 30
)

// catalog is what the cluster serves under every fault.
func (r *world) catalog() string {
	return r.Catalog(harness.Replicas) + fmt.Sprintf(`
[[app]]
name = "elastic"
input_type = "doubles"
default_output = "-1"
latency_slo_micros = 250000
cache = { off = true }
models = ["elastic"]

[[model]]
name = "elastic"
version = "1"
input_type = "doubles"
command = [%q]
replicas = 1
scale = { min = 1, max = 6, metric = "rate", target = 30.0 }
`, r.Gosum)
}

// elastic is how many replicas the elastic model is to have, as Nomad knows.
func (r *world) elastic() (int, error) {
	job, _, err := r.Rig.Jobs.Jobs().Info(jobs.ID(serving.ModelID{Model: "elastic", Version: "1"}), nil)
	if err != nil {
		return 0, err
	}
	return *job.TaskGroups[0].Count, nil
}

// sized says why the elastic model has not as many replicas as its load needs, or nil.
func (r *world) sized(context.Context) error {
	n, err := r.elastic()
	if err == nil && n != elasticReplicas {
		err = fmt.Errorf("the elastic model is to have %d replicas, and %d is right for its load", n, elasticReplicas)
	}
	return err
}

func signal(t *testing.T, pid int, sig syscall.Signal) {
	t.Helper()
	if err := syscall.Kill(pid, sig); err != nil {
		t.Fatalf("signal %v to process %d: %v", sig, pid, err)
	}
}
