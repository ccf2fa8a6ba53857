package local

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/topsail-serving/topsail/cmd/topsail/services"
	"github.com/topsail-serving/topsail/containers/bundlecache"
	"github.com/topsail-serving/topsail/internal/adapter/inprocess"
	"github.com/topsail-serving/topsail/internal/adapter/nvidia"
	"github.com/topsail-serving/topsail/internal/demand"
	"github.com/topsail-serving/topsail/internal/process"
	"github.com/topsail-serving/topsail/rpc"
	"github.com/topsail-serving/topsail/serving"
	"github.com/topsail-serving/topsail/sidecar"
)

// replica is one sidecar with its container's process, if it has one.
type replica struct {
	name        string
	model       *serving.Version
	index       int
	port        string   // of a container that listens and is started; empty: it is another one
	logs        string   // the folder for its container's output
	guard       []string // the command that guards child processes
	runtime     []string // the command that runs a bundle, up to its digest; see fleet
	bundles     func(digest string) (path string)
	bundleCache *bundlecache.Cache // of the bundles that hosts load
	gpus        *nvidia.Pool
	registry    *inprocess.Registry
	local       *rpc.Local // where it listens for gateways
	metrics     *sidecar.Metrics
	demand      *demand.Meter
	log         *slog.Logger

	child   atomic.Pointer[process.Child]
	short   atomic.Pointer[error] // why its container has not been started: the GPUs that it lacks
	crowded chan struct{}         // closed when others have what it lacks
	serving chan struct{}         // closed when it is ready for the first time
}

func replicaName(id serving.ModelID, index int) string { return fmt.Sprintf("%v/%d", id, index) }

// run serves until ctx ends; then the sidecar drains, and after it the process
// is stopped.
func (r *replica) run(ctx context.Context) error {
	containers, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return fmt.Errorf("replica %s: %w", r.name, err)
	}
	gateways := r.local.Listen()
	token := rand.Text() // only our own child may connect as the container
	s := sidecar.New(sidecar.Config{
		Replica: r.name, Models: []*serving.Version{r.served()}, OwnsV1: r.port != "", ContainerToken: []byte(token), Fetch: r.bundleCache.Fetch, Stalled: r.hung, Demand: r.demand,
	}, r.metrics, r.log)

	running, stop := context.WithCancel(context.WithoutCancel(ctx))
	var child sync.WaitGroup
	defer child.Wait()
	defer stop()
	if len(r.argv()) > 0 {
		child.Go(func() { r.runChild(running, r.spec(containers.Addr().String(), token)) })
	}
	registered, unregister := context.WithCancel(running)
	var registry sync.WaitGroup
	defer registry.Wait()
	defer unregister()
	registry.Go(func() {
		e := serving.Endpoint{Replica: r.name, Addr: gateways.Addr().String(), Models: []serving.Definition{r.model.Definition()}}
		services.Announce(registered, r.registry, e, s.Ready, func() { close(r.serving) })
	})
	return s.Run(ctx, gateways, containers)
}

// runChild runs the container's process until ctx ends, with GPUs of its own if it wants
// some.
func (r *replica) runChild(ctx context.Context, spec process.Spec) {
	if want := r.model.Resources.GPU; nvidia.Wanted(want) {
		defer r.gpus.Give(r.name)
		uuids, err := r.gpus.Take(ctx, r.name, want, r.lacks())
		if err != nil {
			return // it is to end
		}
		given := strings.Join(uuids, ",")
		spec.Env = append([]string{"NVIDIA_VISIBLE_DEVICES=" + given, "CUDA_VISIBLE_DEVICES=" + given}, spec.Env...)
	}
	c := process.New(spec, r.guard, r.log)
	r.child.Store(c)
	c.Run(ctx)
}

// lacks notes which GPUs the replica lacks, and logs it when that is another reason.
func (r *replica) lacks() func(error) {
	crowded := sync.OnceFunc(func() { close(r.crowded) })
	return func(err error) {
		if last := r.short.Swap(&err); last == nil || (*last).Error() != err.Error() {
			r.log.Warn("a replica lacks GPUs", "replica", r.name, "err", err)
		}
		if errors.Is(err, nvidia.ErrInUse) {
			crowded()
		}
	}
}

// runs says whether a replica's process runs; that of nil does not.
func (m *member) runs() bool {
	if m == nil {
		return false
	}
	_, running := m.state()
	return running
}

// state says whether the replica's process runs, and what is wrong with it if that
// is more than starting.
func (m *member) state() (problem string, running bool) {
	c := m.child.Load()
	if c == nil { // it has no process of its own, or not yet
		if short := m.short.Load(); short != nil {
			return (*short).Error(), false
		}
		if err := m.model.Container.Check(); err != nil {
			return err.Error(), false
		}
		return "", len(m.argv()) == 0
	}
	snapshot := c.Snapshot()
	return snapshot.Reason, snapshot.State == process.Running
}

// served is the version as the sidecar serves it, which dials a container that listens.
func (r *replica) served() *serving.Version {
	if r.port == "" {
		return r.model
	}
	v := *r.model
	v.Container.Addr = "127.0.0.1:" + r.port
	return &v
}

// container is what is started.
func (r *replica) container() serving.Container {
	if r.port == "" {
		return r.model.Container
	}
	return r.model.Container.WithPort(r.port)
}

// argv is the command of the container's process; none when it is started elsewhere.
func (r *replica) argv() []string {
	c := r.container()
	if c.Bundle == "" {
		return c.Command
	}
	return slices.Concat(r.runtime, []string{"--digest", c.Bundle, "--bundle", cmp.Or(c.BundleURL, r.bundles(c.Bundle))})
}

// spec is the container's process, told by its environment where to connect.
func (r *replica) spec(sidecar, token string) process.Spec {
	env := []string{
		"TOPSAIL_SIDECAR=" + sidecar,
		"TOPSAIL_TOKEN=" + token,
		"TOPSAIL_MODEL=" + r.model.Model,
		"TOPSAIL_VERSION=" + r.model.Version,
		"TOPSAIL_REPLICA=" + r.name,
		"PYTHONUNBUFFERED=1", // so that what a model prints is in the log at once
	}
	if r.model.Host != nil {
		env = append(env, "TOPSAIL_MODELS_DIR="+r.bundleCache.Dir())
	} else {
		env = append(env, "TOPSAIL_INPUT_TYPE="+r.model.InputType.String())
	}
	if r.model.InputLength > 0 {
		env = append(env, "TOPSAIL_INPUT_LENGTH="+strconv.Itoa(r.model.InputLength))
	}
	if r.model.Signature != nil {
		env = append(env, "TOPSAIL_SIGNATURE="+r.model.Signature.JSON())
	}
	if r.model.Session {
		env = append(env, "TOPSAIL_SESSION=1")
	}
	if len(r.model.Stages) > 0 {
		env = append(env, "TOPSAIL_STAGES="+r.model.Stages.JSON())
	}
	for key, value := range r.container().Env {
		env = append(env, key+"="+value)
	}
	return process.Spec{
		Name:    r.name,
		Argv:    r.argv(),
		Dir:     r.model.Container.Dir,
		Env:     env,
		LogFile: r.logFile(),
	}
}

func (r *replica) logFile() string { return logFile(r.logs, replicaID(r.name)) }

// logFile is named by the replica's id, so that no two versions share one: 1 of a-b is not b-1 of a.
func logFile(folder, id string) string { return filepath.Join(folder, id+".log") }

// restart starts the container's process anew.
func (r *replica) restart() {
	if c := r.child.Load(); c != nil {
		c.Restart()
	}
}

// hung has the container's process killed and started anew.
func (r *replica) hung() {
	if c := r.child.Load(); c != nil {
		c.Kill("it hung and was killed")
	}
}
