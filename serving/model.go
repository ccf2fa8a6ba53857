package serving

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"time"
)

// ModelID names one version of a model.
type ModelID struct {
	Model   string `json:"model" toml:"name" help:"the name that apps link" flag:"-"`
	Version string `json:"version" required:"yes" accept:"integer" help:"the name of this version" flag:"-"`
}

func (id ModelID) String() string { return id.Model + ":" + id.Version }

// Compare orders ids by model, then by version.
func (id ModelID) Compare(other ModelID) int {
	return cmp.Or(cmp.Compare(id.Model, other.Model), cmp.Compare(id.Version, other.Version))
}

// Matches says whether the id is what a filter wants: an empty version stands for all of the model, an
// empty model for all models.
func (id ModelID) Matches(filter ModelID) bool {
	return (filter.Model == "" || filter.Model == id.Model) && (filter.Version == "" || filter.Version == id.Version)
}

// Version is a model version as it was registered, as the API, files and stores have it; immutable
// once in a Catalog.
type Version struct {
	ModelID
	Description string       `json:"description,omitempty" help:"a description for people"`
	InputType   InputType    `json:"input_type,omitzero" help:"bytes, ints, floats, doubles, strings or chat; with the inputs of a signature: tensors, the default there; a host has none"`
	InputLength int          `json:"input_length,omitempty" help:"number of elements of every input; 0 is any"`
	Signature   *Signature   `json:"signature,omitempty" help:"named inputs and outputs, with element types and shapes" flag:"-"`
	Session     bool         `json:"session,omitempty" help:"the model gets each query's user, context and time left; its answers are cached for each user and context"`
	Labels      []string     `json:"labels,omitempty" help:"labels to find the version by" flag:"label"`
	Replicas    int          `json:"replicas" default:"1" help:"number of replicas, unless scale is set"`
	Scale       *ScaleSpec   `json:"scale,omitempty" help:"bounds of the number of replicas, and what decides within them" flag:"-"`
	Batch       BatchSpec    `json:"batch,omitzero"`
	Stages      Pipeline     `json:"stages,omitempty" help:"the stages that the container runs; of a program with stages of its own, how those named here run" flag:"-"`
	Host        *HostSpec    `json:"host,omitempty" help:"makes the version a host, whose container loads versions of other models"`
	HostedBy    string       `json:"hosted_by,omitempty" help:"the model whose replicas load this version, instead of replicas of its own"`
	Service     *ServiceSpec `json:"service,omitempty"`
	Resources   Resources    `json:"resources,omitzero"`
	Container
	Prepared bool `json:"prepared,omitempty" toml:"-"` // a container manager of Clipper's made it ahead of its registration, which completes it

	// The catalog gives these.
	Generation string    `json:"generation,omitempty" toml:"-"` // of its definition: another one whenever what answers may depend on has changed
	Pin        *Pin      `json:"pin,omitempty" toml:"-"`        // an operator's word, stronger than Replicas and Scale
	Origin     Origin    `json:"origin,omitempty" toml:"-"`
	Deployed   *Deployed `json:"deployed,omitempty" toml:"-"` // belongs to the generation; the commit is the author's to give. nil: not known
}

// BatchSpec is how a sidecar sizes the batches of a model version.
type BatchSpec struct {
	Strategy string   `json:"strategy,omitempty" help:"aimd (the default), quantile or fixed"`
	MaxSize  int      `json:"max_size,omitempty" help:"most inputs in a batch; 0 is no limit; for fixed, the size" flag:"batch-size"`
	Delay    Duration `json:"delay_micros,omitempty" help:"how long a batch may wait to fill, in microseconds"`
	Pad      bool     `json:"pad,omitempty" help:"for fixed: fill smaller batches up to the size with copies of an input, whose answers are dropped"`
}

// StrategyName is the strategy, the default where none is named.
func (b BatchSpec) StrategyName() string { return cmp.Or(b.Strategy, "aimd") }

// Container says how a container of a version comes to be: a command, a bundle or an
// image that is started, or the address of one that already listens.
type Container struct {
	Command     []string          `json:"command,omitempty" help:"program and arguments of the container to start" flag:"-"`
	Dir         string            `json:"dir,omitempty" path:"true" help:"working directory of the command; in a file, by default the folder of the file"`
	Env         map[string]string `json:"env,omitempty" secret:"true" help:"environment variables of the command, besides the inherited ones"`
	Addr        string            `json:"container_addr,omitempty" addr:"any" help:"address of a container that already listens"`
	Protocol    string            `json:"protocol,omitempty" help:"v1 for a container that listens, on the port in PORT or at container_addr; by default v2"`
	Port        int               `json:"container_port,omitempty" help:"for an image of protocol v1 that always listens on one port: that port"`
	Connections int               `json:"connections,omitempty" help:"connections to a container that listens; 0 is 1"`
	Watch       []string          `json:"watch,omitempty" path:"true" help:"files and folders that restart the command when they change" flag:"-"`
	Bundle      string            `json:"bundle,omitempty" help:"digest of the bundle to run instead of a command, sha256:…"`
	BundleURL   string            `json:"bundle_url,omitempty" help:"where to fetch the bundle; by default from the management service"`

	// What follows is for clusters; local mode runs the command as it is.
	Driver    string            `json:"driver,omitempty" help:"on a cluster: raw_exec, exec or docker; by default jobs.driver"`
	Image     string            `json:"image,omitempty" help:"on a cluster: image for the docker driver"`
	Artifacts []Artifact        `json:"artifacts,omitempty" toml:"artifact" help:"on a cluster: files to fetch before the command starts" flag:"artifact"`
	Secrets   map[string]string `json:"secrets,omitempty" help:"on a cluster: environment variables, each from an item of the job's Nomad variable" flag:"secret"`
}

// ErrNothingToRun says that a version cannot have replicas.
var ErrNothingToRun = errors.New("nothing to run: give the version a bundle, a command, an image or a container_addr")

// Check says whether there is something to run.
func (c Container) Check() error {
	if len(c.Command) == 0 && c.Image == "" && c.Addr == "" && c.Bundle == "" {
		return ErrNothingToRun
	}
	return nil
}

var bundleDigest = regexp.MustCompile(`^sha256:[0-9a-f]{64}$`)

// IsDigest says whether s names a bundle.
func IsDigest(s string) bool { return bundleDigest.MatchString(s) }

// MaxBatchDelay bounds batch.delay: a delay is for filling a batch, not a schedule.
const MaxBatchDelay = time.Second

// Check returns everything that is wrong with the version alone, or nil.
func (v *Version) Check() error {
	errs := []error{CheckModelName(v.Model), CheckVersion(v.Version)}
	wrong := func(format string, args ...any) {
		errs = append(errs, fmt.Errorf("model %q version %q: "+format, append([]any{v.Model, v.Version}, args...)...))
	}
	if v.Host == nil {
		if err := checkInput(v.InputType, v.InputLength, v.Signature); err != nil {
			wrong("%w", err)
		}
	}
	if v.Protocol == "v1" && v.Session {
		wrong("protocol = \"v1\" and session: version 1 carries inputs alone")
	}
	if v.Protocol == "v1" && v.Signature != nil {
		wrong("protocol = \"v1\" and a signature: version 1 carries one vector or text and answers one number, so leave the signature out")
	}
	if v.Replicas < 0 || v.Replicas > MaxReplicas {
		wrong("replicas must be between 0 and %d", MaxReplicas)
	}
	switch v.Batch.Strategy {
	case "", "aimd", "quantile":
	case "fixed":
		if v.Batch.MaxSize == 0 {
			wrong("batch strategy \"fixed\" needs max_size, the size")
		}
	default:
		wrong("batch strategy %q is unknown: use \"aimd\", \"quantile\" or \"fixed\"", v.Batch.Strategy)
	}
	if v.Batch.Pad && v.Batch.Strategy != "fixed" {
		wrong("batch pad needs strategy \"fixed\", whose size it fills batches up to")
	}
	if v.Batch.MaxSize < 0 || v.Batch.MaxSize > 65536 {
		wrong("batch max_size must be between 0 (no cap) and 65536")
	}
	if v.Batch.Delay < 0 || v.Batch.Delay.Std() > MaxBatchDelay {
		wrong("batch delay_micros must be between 0 and %d", MaxBatchDelay.Microseconds())
	}
	c := v.Container
	switch {
	case c.Bundle != "" && (len(c.Command) > 0 || c.Addr != "" || c.Image != "" || c.Dir != ""):
		wrong("has a bundle and also command, dir, image or container_addr: a bundle replaces these")
	case c.Bundle != "" && !IsDigest(c.Bundle):
		wrong("bundle must be a digest, sha256:… with 64 hexadecimal digits")
	case c.BundleURL != "" && c.Bundle == "":
		wrong("bundle_url needs bundle, the digest of the bundle at that URL")
	case len(c.Command) > 0 && c.Addr != "":
		wrong("has both command and container_addr: give one")
	case c.Addr != "" && c.Protocol != "v1":
		wrong("container_addr is for containers that listen, which only protocol = \"v1\" does; a version 2 container connects by itself")
	case c.Bundle != "" && c.Protocol == "v1":
		wrong("protocol = \"v1\" and a bundle: bundles speak version 2, so leave protocol out")
	case c.Listens() && len(c.Command) == 0 && c.Image == "" && v.Host == nil:
		wrong("protocol = \"v1\" needs a command or an image that listens on the port PORT says, or the container_addr of a container that already listens")
	case c.Listens() && c.Env[PortVariable] != "":
		wrong("env sets PORT, which tells each replica the port to listen on: leave it out, and write ${PORT} where the container needs it")
	case c.Port != 0 && (!c.Listens() || c.Image == ""):
		wrong("container_port is for an image of version 1 that always listens on the same port; a command listens on the port PORT says, which differs for each replica")
	case c.Port < 0 || c.Port > 65535:
		wrong("container_port must be between 1 and 65535")
	}
	if c.Protocol != "" && c.Protocol != "v1" && c.Protocol != "v2" {
		wrong("protocol %q is unknown: use \"v1\" or \"v2\"", c.Protocol)
	}
	if c.Connections < 0 || c.Connections > 256 {
		wrong("connections must be between 1 and 256")
	}
	for _, err := range append([]error{checkDescription(v.Description), v.Scale.check(), v.Pin.check(), v.Deployed.Check(), v.Resources.check(), c.checkCluster()}, slices.Concat(v.stageProblems(), v.hostProblems(), v.serviceProblems())...) {
		if err != nil {
			wrong("%w", err)
		}
	}
	return errors.Join(errs...)
}

// stageProblems are what is wrong with the stages of the version.
func (v *Version) stageProblems() (errs []error) {
	if len(v.Stages) == 0 {
		return nil
	}
	wrong := func(format string, args ...any) { errs = append(errs, fmt.Errorf(format, args...)) }
	c := v.Container
	if c.Protocol == "v1" {
		wrong("stages need version 2 of the protocol, and this version has protocol = \"v1\"")
	}
	if c.Protocol != "v1" && c.Bundle == "" && len(c.Command) == 0 && c.Image == "" {
		wrong("stages need a command or a bundle that runs them; `python3 -m topsail pipeline` runs stages that all set code")
	}
	if b := v.Batch; b.MaxSize != 0 || b.Delay != 0 || b.Pad || b.Strategy == "quantile" || b.Strategy == "fixed" {
		wrong("batch is for versions without stages: give each stage its own")
	}
	for _, s := range v.Stages {
		if b := s.Batch; (b.Strategy == "" || b.Strategy == "none") && (b.MaxSize > 0 || b.Delay > 0) {
			wrong("stage %q: batch needs a strategy, \"fixed\", \"aimd\" or \"quantile\": without one, inputs are passed one at a time", s.Name)
		}
		if s.Model != "" || s.App != "" {
			wrong("stage %q: model and app are for the stages of apps: give a stage of a version code", s.Name)
		}
	}
	return append(errs, v.Stages.problems()...)
}

// Model is a named model with its versions. Current is the version asked for.
// Serving is the last current version that was seen with a ready replica: where
// queries go until the current one has one, also at a gateway that starts afresh.
type Model struct {
	Name     string
	Current  string
	Serving  string // empty before the first
	Previous string // what was current before Current, for a rollback; empty: unknown, or deleted
	FileSays string // the version that the configuration file made current when it was read last; empty: none
	Versions map[string]*Version
}

// Deployed says where a version comes from: what made it the generation that it is.
type Deployed struct {
	By     string    `json:"by"`               // as the audit log names the author
	At     time.Time `json:"at"`               //
	Client string    `json:"client,omitempty"` // the program that asked for it, as it names itself; empty: none did, or it does not
	Commit string    `json:"commit,omitempty"` // of the source, as the client says; empty: not said
}

var commit = regexp.MustCompile(`^[0-9A-Za-z][0-9A-Za-z._+/-]{0,127}$`)

// Check says what is wrong with what is asked for, or nil.
func (d *Deployed) Check() error {
	if d != nil && d.Commit != "" && !commit.MatchString(d.Commit) {
		return errors.New("commit must name a commit: at most 128 letters, digits and ._+/-, such as what git rev-parse HEAD prints")
	}
	return nil
}

// PortVariable is the variable that tells a container of version 1 on which port to listen.
const PortVariable = "PORT"

// Listens says whether the container is started, and then listens on a port of its replica's.
func (c Container) Listens() bool { return c.Protocol == "v1" && c.Addr == "" }

// WithPort is c as a replica starts it that has the port: PORT has it, and ${PORT} in the
// command and in variables stands for it.
func (c Container) WithPort(port string) Container {
	fill := strings.NewReplacer("${"+PortVariable+"}", port)
	c.Command, c.Env = slices.Clone(c.Command), maps.Clone(c.Env)
	for i, argument := range c.Command {
		c.Command[i] = fill.Replace(argument)
	}
	if c.Env == nil {
		c.Env = map[string]string{}
	}
	for name, value := range c.Env {
		c.Env[name] = fill.Replace(value)
	}
	c.Env[PortVariable] = port
	return c
}
