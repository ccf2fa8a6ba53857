package api

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"topsail/serving"
	"topsail/serving/catalog"
)

// Version is a model version as the API shows and takes it.
type Version struct {
	Model         string             `json:"model"`
	Version       string             `json:"version" required:"yes"`
	Description   string             `json:"description,omitempty"`
	InputType     serving.InputType  `json:"input_type,omitzero"`
	InputLength   int                `json:"input_length,omitempty"`
	Labels        []string           `json:"labels,omitempty"`
	Replicas      *int               `json:"replicas,omitzero"` // nil: 1
	Scale         *Scale             `json:"scale,omitempty"`
	Pin           *Pin               `json:"pin,omitempty"` // not taken
	Batch         *Batch             `json:"batch,omitempty"`
	Stages        []VersionStage     `json:"stages,omitempty"`
	Host          *serving.HostSpec  `json:"host,omitempty"`
	HostedBy      string             `json:"hosted_by,omitempty"`
	Resources     serving.Resources  `json:"resources,omitzero"`
	Bundle        string             `json:"bundle,omitempty"`
	BundleURL     string             `json:"bundle_url,omitempty"`
	Command       []string           `json:"command,omitempty"`
	Dir           string             `json:"dir,omitempty"`
	Env           map[string]string  `json:"env,omitempty"`
	Watch         []string           `json:"watch,omitempty"`
	ContainerAddr string             `json:"container_addr,omitempty"`
	Protocol      string             `json:"protocol,omitempty"`
	ContainerPort int                `json:"container_port,omitempty"`
	Connections   int                `json:"connections,omitempty"`
	Driver        string             `json:"driver,omitempty"`
	Image         string             `json:"image,omitempty"`
	Artifacts     []serving.Artifact `json:"artifacts,omitempty"`
	Secrets       map[string]string  `json:"secrets,omitempty"`
	Prepared      bool               `json:"prepared,omitempty"`

	// What follows is shown, and not taken.
	Origin     serving.Origin    `json:"origin,omitempty"`
	Generation string            `json:"generation,omitempty"`
	Deployed   *serving.Deployed `json:"deployed,omitempty"`
	Current    bool              `json:"current"`
	Serving    bool              `json:"serving"`
	UsedBy     []string          `json:"used_by,omitzero"`
	Example    string            `json:"example,omitempty"`

	Performance *Performance `json:"performance,omitempty"` // where versions are asked for
}

// Performance is what the replicas of a version did, those that are gone included, since
// the first of them began to serve it. Times are in microseconds; nil is unknown.
type Performance struct {
	Since      time.Time `json:"since"`
	Answers    uint64    `json:"answers"`
	Errors     *float64  `json:"errors,omitempty"`
	Batches    uint64    `json:"batches"`
	BatchMean  *float64  `json:"batch_mean,omitempty"`
	P50        *float64  `json:"p50_micros,omitempty"`
	P99        *float64  `json:"p99_micros,omitempty"`
	Throughput *float64  `json:"throughput,omitempty"`
}

// Scale is how many replicas of a version there may be.
type Scale struct {
	Min          int     `json:"min"`
	Max          int     `json:"max" required:"yes"`
	Metric       string  `json:"metric,omitempty"`
	Target       float64 `json:"target,omitempty"`
	Utilisation  float64 `json:"utilisation,omitempty"`
	Idle         micros  `json:"idle_micros,omitempty"`
	StepUp       float64 `json:"step_up,omitempty"`
	StepDown     float64 `json:"step_down,omitempty"`
	CooldownUp   micros  `json:"cooldown_up_micros,omitempty"`
	CooldownDown micros  `json:"cooldown_down_micros,omitempty"`
	DeadBand     float64 `json:"dead_band,omitempty"`
}

// Batch is how batches are sized.
type Batch struct {
	Strategy string `json:"strategy,omitempty"`
	MaxSize  int    `json:"max_size,omitempty"`
	Delay    micros `json:"delay_micros,omitempty"`
	Pad      bool   `json:"pad,omitempty"`
}

// Pin is an operator's word on the number of replicas.
type Pin struct {
	Count  int       `json:"count" required:"yes"`
	Until  time.Time `json:"until,omitzero"`
	Reason string    `json:"reason,omitempty"`
}

// version describes a version.
func (v view) version(version *serving.Version) Version {
	return v.asItIs(v.shown(version))
}

// shown is a version without what is hidden from the caller.
func (v view) shown(version *serving.Version) *serving.Version {
	if v.open() {
		return version
	}
	return catalog.Redact(version)
}

func (v view) asItIs(version *serving.Version) Version {
	c, m := version.Container, v.cat.Models[version.Model]
	doc := Version{
		Model: version.Model, Version: version.Version, Description: version.Description, InputType: version.InputType, InputLength: version.InputLength,
		Labels: version.Labels, Replicas: &version.Replicas, Scale: scaleOf(version.Scale), Pin: (*Pin)(version.Pin), Resources: version.Resources,
		Bundle: c.Bundle, BundleURL: c.BundleURL, Command: c.Command, Dir: c.Dir, Env: c.Env, Watch: c.Watch,
		ContainerAddr: c.Addr, Protocol: c.Protocol, ContainerPort: c.Port, Connections: c.Connections, Driver: c.Driver, Image: c.Image,
		Artifacts: c.Artifacts, Secrets: c.Secrets, Stages: stagesOf(version.Stages), Host: version.Host, HostedBy: version.HostedBy, Prepared: version.Prepared, Origin: version.Origin, Generation: version.Generation, Deployed: version.Deployed,
		Current: m.Current == version.Version, Serving: m.Serving == version.Version, UsedBy: v.usedBy(version.ModelID),
	}
	if b := version.Batch; b != (serving.BatchSpec{}) {
		doc.Batch = &Batch{b.Strategy, b.MaxSize, microsOf(b.Delay), b.Pad}
	}
	return doc
}

// tagOf is the version of a version: it does not tell what is hidden.
func (v view) tagOf(version *serving.Version) string {
	return etagOf(v.asItIs(catalog.Redact(version)))
}

// usedBy are the apps, of those that the caller sees, whose queries a version may get:
// it is the current or the serving one of a model that they ask, or their policy names it.
func (v view) usedBy(id serving.ModelID) []string {
	m, apps := v.cat.Models[id.Model], []string{}
	asked := m.Current == id.Version || m.Serving == id.Version
	for _, name := range v.appsAsking(id.Model) {
		if asked || slices.Contains(v.cat.Apps[name].Pins(), id) {
			apps = append(apps, name)
		}
	}
	return apps
}

func scaleOf(s *serving.ScaleSpec) *Scale {
	if s == nil {
		return nil
	}
	return &Scale{s.Min, s.Max, s.Metric, s.Target, s.Utilisation, microsOf(s.Idle), s.StepUp, s.StepDown,
		microsOf(s.CooldownUp), microsOf(s.CooldownDown), s.DeadBand}
}

// read is the version that the document describes, as long as it is right in itself.
func (doc Version) read() (*serving.Version, error) {
	scale, err := doc.Scale.read()
	if err != nil {
		return nil, err
	}
	v := &serving.Version{
		ModelID: serving.ModelID{Model: doc.Model, Version: doc.Version}, Description: doc.Description, InputType: doc.InputType, InputLength: doc.InputLength,
		Labels: doc.Labels, Replicas: 1, Scale: scale, Resources: doc.Resources, Host: doc.Host, HostedBy: doc.HostedBy, Prepared: doc.Prepared,
		Container: serving.ContainerSpec{
			Command: doc.Command, Dir: doc.Dir, Env: doc.Env, Addr: doc.ContainerAddr, Protocol: doc.Protocol, Port: doc.ContainerPort,
			Connections: doc.Connections, Watch: doc.Watch, Bundle: doc.Bundle, BundleURL: doc.BundleURL,
			Driver: doc.Driver, Image: doc.Image, Artifacts: doc.Artifacts, Secrets: doc.Secrets,
		},
	}
	if c := v.Container; v.Host != nil && len(c.Command) == 0 && c.Bundle == "" && c.Image == "" {
		v.Container.Command = serving.HostCommand()
	}
	if doc.Replicas != nil {
		v.Replicas = *doc.Replicas
	}
	if v.Stages, err = pipeline(doc.Stages); err != nil {
		return nil, err
	}
	var times durations
	if b := doc.Batch; b != nil {
		v.Batch = serving.BatchSpec{Strategy: b.Strategy, MaxSize: b.MaxSize, Delay: times.read(b.Delay, "batch.delay_micros"), Pad: b.Pad}
	}
	return v, cmp.Or(times.err, doc.checkEnv(), doc.checkHidden())
}

func (doc Version) checkEnv() error {
	for _, name := range slices.Sorted(maps.Keys(doc.Env)) {
		if name == "" || strings.ContainsAny(name, "=\x00") || strings.Contains(doc.Env[name], "\x00") {
			return invalid("env: %q cannot be a variable: neither its name may be empty or have '=', nor either have a NUL", name)
		}
	}
	return nil
}

// checkHidden refuses what was shown to somebody who may not read it, and comes back.
func (doc Version) checkHidden() error {
	for _, name := range slices.Sorted(maps.Keys(doc.Env)) {
		if doc.Env[name] == catalog.Hidden {
			return notShown(fmt.Sprintf("env: the value of %q", name))
		}
	}
	if strings.Contains(doc.BundleURL, catalog.Hidden) {
		return notShown("a part of bundle_url")
	}
	for i, a := range doc.Artifacts {
		if strings.Contains(a.Source, catalog.Hidden) {
			return notShown(fmt.Sprintf("a part of artifacts[%d].source", i))
		}
	}
	return nil
}

func notShown(what string) error {
	return invalid("%s is %q, which stands for what was not shown; give the value itself", what, catalog.Hidden)
}

func (s *Scale) read() (*serving.ScaleSpec, error) {
	if s == nil {
		return nil, nil
	}
	var times durations
	spec := &serving.ScaleSpec{
		Min: s.Min, Max: s.Max, Metric: s.Metric, Target: s.Target, Utilisation: s.Utilisation,
		Idle: times.read(s.Idle, "scale.idle_micros"), StepUp: s.StepUp, StepDown: s.StepDown,
		CooldownUp: times.read(s.CooldownUp, "scale.cooldown_up_micros"), CooldownDown: times.read(s.CooldownDown, "scale.cooldown_down_micros"),
		DeadBand: s.DeadBand,
	}
	return spec, times.err
}

// CheckRunnable says why a version cannot run in a mode, or nil: Docker images need a
// cluster. Local mode runs the command of a version that has both.
func CheckRunnable(mode string, v *serving.Version) error {
	if c := v.Container; mode == "local" && c.Image != "" && len(c.Command) == 0 && c.Addr == "" {
		return fmt.Errorf("version %q of model %q is the Docker image %q, and local mode runs none: give a bundle or a command, or deploy it to a cluster",
			v.Version, v.Model, c.Image)
	}
	return nil
}
