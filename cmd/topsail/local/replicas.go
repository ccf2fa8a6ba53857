package local

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/topsail-serving/topsail/cmd/topsail/manage"
	"github.com/topsail-serving/topsail/cmd/topsail/services"
	"github.com/topsail-serving/topsail/gateway"
	"github.com/topsail-serving/topsail/gateway/route"
	"github.com/topsail-serving/topsail/internal/adapter/nvidia"
	"github.com/topsail-serving/topsail/internal/process"
	"github.com/topsail-serving/topsail/serving"
	"github.com/topsail-serving/topsail/web/api"
)

// replicas is the fleet as people see it and manage it.
type replicas struct {
	fleet    *fleet
	gateway  *gateway.Gateway
	usage    *usage
	services *services.Services
}

// Replicas implements api.Replicas.
func (r replicas) Replicas() []api.Replica {
	seen := map[string]route.Status{}
	for _, s := range r.gateway.Replicas() {
		seen[s.Replica] = s
	}
	var list []api.Replica
	cat := r.fleet.catalog()
	for _, m := range r.fleet.members() {
		one := describe(m, seen[m.name])
		manage.Redefined(&one, m.model.Definition(), cat)
		r.usage.fill(&one)
		list = append(list, one)
	}
	for _, i := range r.services.Instances() {
		list = append(list, describeInstance(&i, seen[i.Name]))
	}
	slices.SortFunc(list, func(a, b api.Replica) int { return cmp.Compare(a.ID, b.ID) })
	return list
}

// describe is a replica as its process is, and as the gateway sees it.
func describe(m *member, seen route.Status) api.Replica {
	r := api.Replica{ID: replicaID(m.name), Name: m.name, Model: m.model.Model, Version: m.model.Version, State: "starting"}
	c, short := m.child.Load(), m.short.Load()
	if c == nil && short != nil {
		r.Reason = (*short).Error()
		if !errors.Is(*short, nvidia.ErrInUse) {
			r.State = "failed"
		}
	}
	if c != nil {
		s := c.Snapshot()
		r.PID, r.Restarts, r.Since, r.Reason = s.PID, s.Restarts, s.Since.UTC(), s.Reason
		switch s.State {
		case process.BackingOff:
			r.State = "failed"
		case process.Stopped:
			r.State = "stopped"
		}
		if r.State == "starting" {
			r.Reason = cmp.Or(c.Saying(), r.Reason)
		}
	}
	if m.ctx.Err() != nil {
		r.State, seen.Models = "draining", nil
	}
	asSeen(&r, seen)
	return r
}

// asSeen adds how the gateway sees a replica.
func asSeen(r *api.Replica, seen route.Status) {
	switch {
	case len(seen.Models) > 0 && seen.Ejected:
		r.State, r.Reason = "ejected", "it failed three times in a row, and is probed from time to time"
	case len(seen.Models) > 0:
		r.State, r.Reason = "ready", ""
	}
	r.InFlight, r.Latency = seen.InFlight, seen.Latency.Microseconds()
}

// describeInstance is an instance of a service that others run, which is a replica here, too.
func describeInstance(i *services.Instance, seen route.Status) api.Replica {
	r := api.Replica{ID: replicaID(i.Name), Name: i.Name, Model: i.Model.Model, Version: i.Model.Version, State: "starting", Since: i.Since.UTC()}
	if i.Problem != nil {
		r.State, r.Reason = "failed", i.Problem.Error()
	}
	asSeen(&r, seen)
	return r
}

// replicaID is the name of a replica without what paths use.
func replicaID(name string) string { return strings.ReplaceAll(name, "/", "~") }

// Restart implements api.Replicas.
func (r replicas) Restart(_ context.Context, id string) error {
	for _, m := range r.fleet.members() {
		if replicaID(m.name) == id {
			if short := m.short.Load(); m.child.Load() == nil && short != nil {
				return fmt.Errorf("%w: its container has not been started: %w", api.ErrRefused, *short)
			}
			if m.child.Load() == nil {
				return fmt.Errorf("%w: Topsail did not start its container, and cannot restart it", api.ErrRefused)
			}
			m.restart()
			return nil
		}
	}
	return r.elsewhere(id)
}

// elsewhere is why nothing can be done with a replica that is not one of the fleet's.
func (r replicas) elsewhere(id string) error {
	for _, i := range r.services.Instances() {
		if replicaID(i.Name) == id {
			return fmt.Errorf("%w: %s is an instance of a service that others run", api.ErrRefused, i.URL)
		}
	}
	return api.ErrNoReplica
}

// Drain implements api.Replicas: another replica takes its place before it goes.
func (r replicas) Drain(_ context.Context, id string) error {
	if !r.fleet.drain(func(name string) bool { return replicaID(name) == id }) {
		return r.elsewhere(id)
	}
	return nil
}

// Ended implements api.Replicas: the log of a replica stays when it ends, and the next one of its name adds to it.
func (r replicas) Ended(_ context.Context, id string) (serving.ModelID, error) {
	version, ok := versionIn(id)
	if !ok {
		return serving.ModelID{}, api.ErrNoReplica
	}
	if _, err := os.Stat(logFile(r.fleet.logs(), id)); err != nil {
		return serving.ModelID{}, api.ErrNoReplica
	}
	return version, nil
}

// versionIn is the version in the id of a replica. What is not one never names a file.
func versionIn(id string) (version serving.ModelID, ok bool) {
	name, index, _ := strings.Cut(id, "~")
	version.Model, version.Version, _ = strings.Cut(name, ":")
	_, err := strconv.ParseUint(index, 10, 16)
	return version, errors.Join(serving.CheckModelName(version.Model), serving.CheckVersion(version.Version), err) == nil
}

// Logs implements api.Replicas.
func (r replicas) Logs(ctx context.Context, id string, query api.LogQuery) (io.ReadCloser, error) {
	for _, m := range r.fleet.members() {
		if replicaID(m.name) == id {
			return process.OpenLog(ctx, m.logFile(), query.Lines, query.Follow)
		}
	}
	if _, err := r.Ended(ctx, id); err != nil {
		return nil, r.elsewhere(id)
	}
	return process.OpenLog(ctx, logFile(r.fleet.logs(), id), query.Lines, false)
}
