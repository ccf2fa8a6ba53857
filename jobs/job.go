package jobs

import (
	"strconv"
	"time"

	"github.com/hashicorp/nomad/api"

	"github.com/topsail-serving/topsail/serving"
)

// newJob is the job of s, with the hash of what makes a replica.
func newJob(s Spec, spec string) *api.Job {
	v, settings := s.Version, s.Settings.Hash()
	s.Settings = s.Settings.defaults()
	if s.Settings.Mesh {
		s.Settings.TLS = meshTLS
	}
	return &api.Job{
		ID:          new(ID(v.ModelID)),
		Type:        new(api.JobTypeService),
		Region:      maybe(s.Settings.Region),
		Namespace:   maybe(s.Settings.Namespace),
		NodePool:    maybe(s.Settings.NodePool),
		Datacenters: s.Settings.Datacenters,
		Meta: map[string]string{
			MetaModel: v.Model, MetaVersion: v.Version,
			MetaGeneration: strconv.Itoa(Generation), MetaSettings: settings, MetaSpec: spec,
		},
		Update:     newUpdate(s),
		TaskGroups: []*api.TaskGroup{newGroup(s)},
	}
}

// maybe is text of a job, which is left to Nomad where it is empty.
func maybe(text string) *string {
	if text == "" {
		return nil
	}
	return &text
}

// newUpdate is how replicas that run are replaced.
func newUpdate(s Spec) *api.UpdateStrategy {
	if !s.Rolling { // without deployments: one that runs would forbid every change of the count
		return &api.UpdateStrategy{MaxParallel: new(0)}
	}
	first := canaries(s)
	return &api.UpdateStrategy{
		MaxParallel:      new(1),
		Canary:           &first,
		AutoPromote:      new(first > 0),
		AutoRevert:       new(true),
		HealthCheck:      new("checks"),
		MinHealthyTime:   new(2 * time.Second),
		HealthyDeadline:  new(10 * time.Minute),
		ProgressDeadline: new(11 * time.Minute),
	}
}

// canaries are the replicas that a rollout starts before it ends others: all of
// them, so that never fewer serve than were asked for. A cluster seldom has as many
// GPUs to spare; there a replica ends before the one in its place starts.
func canaries(s Spec) int {
	if s.Version.Resources.GPU.Count > 0 {
		return 0
	}
	return s.Count
}

// newGroup is the replicas.
func newGroup(s Spec) *api.TaskGroup {
	return &api.TaskGroup{
		Name:          new(Group),
		Count:         new(s.Count),
		Networks:      []*api.NetworkResource{newNetwork(s.Version.Container)},
		Services:      []*api.Service{newService(s)},
		ShutdownDelay: new(ShutdownDelay(s.SLO)),
		EphemeralDisk: newDisk(s.Version.Host),
		Spreads:       []*api.Spread{{Attribute: "${node.unique.id}"}}, // so that replicas do not go down together with one node
		RestartPolicy: &api.RestartPolicy{
			Attempts: new(3), Interval: new(time.Minute), Delay: new(time.Second), Mode: new(api.RestartPolicyModeFail),
		},
		ReschedulePolicy: &api.ReschedulePolicy{
			Delay: new(5 * time.Second), DelayFunction: new("exponential"), MaxDelay: new(time.Minute), Unlimited: new(true),
		},
		Disconnect: &api.DisconnectStrategy{ // a node that Nomad does not hear of may well serve on
			LostAfter: new(5 * time.Minute), Replace: new(true), Reconcile: new(api.ReconcileOptionKeepOriginal),
		},
		Tasks: newTasks(s),
	}
}

// newNetwork has the ports of a replica.
func newNetwork(c serving.Container) *api.NetworkResource {
	ports := []api.Port{{Label: "rpc"}, {Label: "containers"}}
	if c.Listens() {
		ports = append(ports, api.Port{Label: portLabel, To: c.Port})
	}
	return &api.NetworkResource{Mode: "host", DynamicPorts: append(ports, api.Port{Label: "ops"})}
}

// diskFactor is how many times the memory of a host its bundles may take on disk, and
// one that is just being unpacked with them.
const diskFactor = 5

// newDisk has room for the bundles of a host, beside its logs; nil is Nomad's default.
func newDisk(h *serving.HostSpec) *api.EphemeralDisk {
	if h == nil {
		return nil
	}
	return &api.EphemeralDisk{SizeMB: new(300 + diskFactor*h.MemoryMB)}
}

// newTasks are the sidecar and, unless it runs by itself, the container. The one that starts first ends last.
func newTasks(s Spec) []*api.Task {
	sidecar, container := newSidecar(s), newContainer(s)
	if container == nil {
		return []*api.Task{sidecar}
	}
	first := sidecar
	if s.Version.Container.Listens() { // a container of version 1 does not drain: the sidecar does, and then tells it to end
		first = container
	}
	first.Lifecycle = &api.TaskLifecycle{Hook: api.TaskLifecycleHookPrestart, Sidecar: true}
	return []*api.Task{sidecar, container}
}
