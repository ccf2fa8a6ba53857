package api

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/url"
	"time"

	"github.com/topsail-serving/topsail/internal/check"
	"github.com/topsail-serving/topsail/serving"
	"github.com/topsail-serving/topsail/serving/catalog"
)

// System is what the API manages and shows. Its parts may be called concurrently;
// what they return is only read.
type System struct {
	Mode    string        // "local" or "cluster"
	Version string        // of Topsail
	Gateway func() string // the URL of a gateway, for examples; empty while none is known

	Store     Store
	Audit     Audit
	Usage     Counts
	Learning  Learning
	Replicas  Replicas
	Scheduler Scheduler
	Cluster   func(ctx context.Context) Cluster // the processes and servers, as they are
	// SetCount sets how many processes of a role there are to be: one of Roles. It is nil where there is one of each, and
	// fails with ErrRefused where what runs them does not take it.
	SetCount func(ctx context.Context, role string, count int, reason string) error
	// Job is how a version runs. Without secrets, it lacks what catalog.Redact leaves out of a version.
	Job func(ctx context.Context, id serving.ModelID, secrets bool) (Job, error)
	Ask func(ctx context.Context, app string, body []byte) (Trial, error) // a gateway
	// AskParts is Ask for an answer in parts: its events until ctx ends, or nil and what the gateway answered as a
	// whole, such as an error. It is nil where answers only come as a whole.
	AskParts  func(ctx context.Context, app string, body []byte) (parts io.ReadCloser, whole Trial, err error)
	Traffic   Traffic
	Artifacts Artifacts
	Backups   Backups
	TOML      func(cat *serving.Catalog) ([]byte, error) // the catalog as a configuration file
}

// Store holds the catalog.
type Store interface {
	Catalog() *serving.Catalog
	// Apply is catalog.Apply, made durable. A catalog.Signed change is kept in the audit log.
	Apply(ctx context.Context, change catalog.Change, ifRevision uint64) (*serving.Catalog, error)
	// Watch calls fn with the catalog as it is and after each change, until ctx ends.
	Watch(ctx context.Context, fn func(*serving.Catalog)) error
}

// Audit is the log of changes. The store itself writes those of the catalog.
type Audit interface {
	AddAudit(ctx context.Context, entry serving.AuditEntry) error
	// AuditLog lists entries, the newest first.
	AuditLog(ctx context.Context, query serving.AuditQuery) ([]serving.AuditEntry, error)
}

// Counts are what came of apps and versions since they were registered.
type Counts interface {
	// UsageOf is what is known of objects, in their order, each followed by its stages,
	// sorted. Objects of which nothing is known are left out.
	UsageOf(ctx context.Context, objects []serving.UsageKey) ([]serving.Usage, error)
}

// Learning is what policies have learned.
type Learning interface {
	// Learned is serving.ErrUnknownApp for an app that is not there.
	Learned(ctx context.Context, app, user, about string) (*serving.Learning, error)
	// Forget sets the state aside, so that the policy begins anew.
	Forget(ctx context.Context, app, user, about string) error
}

var (
	// ErrNoReplica says that there is no replica of an id.
	ErrNoReplica = errors.New("the replica does not exist: see the list of replicas")
	// ErrRefused says that something cannot be done as things are; the error that wraps it says why.
	ErrRefused = errors.New("refused")
)

// Replicas are the replicas and the system that runs them. Methods with an id fail with
// ErrNoReplica or ErrRefused where that is the reason.
type Replicas interface {
	Replicas() []Replica // by id
	Restart(ctx context.Context, id string) error
	Drain(ctx context.Context, id string) error
	// Ended is the version of a replica that is no longer listed, while its output may still be kept.
	Ended(ctx context.Context, id string) (serving.ModelID, error)
	// Logs opens the output of a replica, or of one that has ended; with query.Follow it goes on until ctx ends.
	Logs(ctx context.Context, id string, query LogQuery) (io.ReadCloser, error)
}

// LogQuery says which lines of a replica's output.
type LogQuery struct {
	Lines  int    // how many of the last
	Follow bool   // and then what comes
	Stream string // "all" of the container, its "stdout" or "stderr", or "sidecar"; local mode has one stream
}

// Scheduler decides the numbers of replicas.
type Scheduler interface {
	// Decisions lists the last ones, the newest first; about narrows them down to a model, or a version.
	Decisions(ctx context.Context, n int, about serving.ModelID) ([]serving.Decision, error)
	Scheduler(ctx context.Context) (SchedulerStatus, error)
}

// Traffic is what clients asked and got, as the processes count it.
type Traffic interface {
	Now() TrafficNow
	// Chosen are the models that the policy of an app had asked in the last minute, in no order; of an app
	// that does not choose, none.
	Chosen(app string) []ModelTraffic
	App(name string, window time.Duration) AppSeries
	Version(id serving.ModelID, window time.Duration) VersionSeries
	// Stages says where the time of a version with stages goes, at all its replicas or at
	// the one whose Name it is given. There are none where none was measured.
	Stages(id serving.ModelID, replica string, window time.Duration) VersionStages
	// Performance is what replicas of these definitions did since they were first measured;
	// nil while nothing is.
	Performance(definitions []serving.Definition) *Performance
	// Streams says how the streams are that processes serve at present, by their names.
	Streams() map[string]*StreamNow
	// Measured fills in what the replica's sidecar has measured.
	Measured(r *Replica)
}

// Artifacts keeps bundles by their digests.
type Artifacts interface {
	// Put stores a bundle that it has checked. created is false where it is there already.
	Put(ctx context.Context, r io.Reader) (a Artifact, created bool, err error)
	Get(ctx context.Context, digest string) (Artifact, error)
	Open(ctx context.Context, digest string) (io.ReadSeekCloser, error)
	List(ctx context.Context) (digests []string, err error) // in order
	Delete(ctx context.Context, digest string) error
	// Address is where a bundle can be fetched for a while: a URL, or what is to follow the
	// path of its content here, and Signed says what is wrong with that, or nil. It is empty
	// where addresses are not signed.
	Address(ctx context.Context, digest string, now time.Time) (string, error)
	Signed(digest string, query url.Values, now time.Time) error
}

// Job is how Nomad, or local mode, runs a version.
type Job struct {
	Kind string `json:"kind"` // "nomad" or "process"
	Text string `json:"text"` // JSON, as Nomad's API has it, or a command
	Plan string `json:"plan,omitempty"`
}

// Trial is a query with where its time went.
type Trial struct {
	Status  int             `json:"status"`
	Answer  json.RawMessage `json:"answer"`
	Micros  int64           `json:"micros"`
	Stages  []Stage         `json:"stages"`
	Gateway string          `json:"gateway,omitempty"`
}

// Stage is a part of a query's time.
type Stage struct {
	Stage  string `json:"stage"`
	Micros int64  `json:"micros"`
}

// Replica is one replica as people want to know it. Times are in microseconds.
type Replica struct {
	ID          string         `json:"id"` // without slashes
	Model       string         `json:"model"`
	Version     string         `json:"version"`
	State       string         `json:"state"` // "starting", "ready", "ejected", "draining", "failed" or "stopped"
	Reason      string         `json:"reason,omitempty"`
	Node        string         `json:"node,omitempty"`
	Allocation  string         `json:"allocation,omitempty"`
	PID         int            `json:"pid,omitempty"`
	Restarts    int            `json:"restarts,omitempty"`
	Since       time.Time      `json:"since,omitzero"`
	CPU         float64        `json:"cpu,omitempty"`              // cores that it uses
	Memory      int64          `json:"memory_bytes,omitempty"`     // that is resident
	GPUMemory   int64          `json:"gpu_memory_bytes,omitempty"` // on all of its GPUs
	InFlight    int            `json:"in_flight,omitempty"`
	Latency     int64          `json:"latency_micros,omitempty"`
	QueueLength int            `json:"queue_length,omitempty"`
	Wait        int64          `json:"wait_micros,omitempty"`
	BatchLimit  int            `json:"batch_limit,omitempty"`
	BatchMean   float64        `json:"batch_mean,omitempty"`
	Answers     uint64         `json:"answers,omitempty"`
	Profile     []ProfilePoint `json:"profile,omitempty"`
	Stages      []StageTraffic `json:"stages,omitempty"` // in the last minute; where one replica is asked for

	Name string `json:"-"` // what the metrics call it
}

// ProfilePoint is the estimated time of a batch of a size.
type ProfilePoint struct {
	Size   int   `json:"size"`
	Micros int64 `json:"micros"`
}

// Artifact is a stored bundle.
type Artifact struct {
	Digest   string          `json:"digest"`
	Size     int64           `json:"size"`
	Created  time.Time       `json:"created"`
	Manifest json.RawMessage `json:"manifest"`
	UsedBy   []string        `json:"used_by"`
}

// SchedulerStatus is the scheduler with its pools.
type SchedulerStatus struct {
	Leader        string  `json:"leader"`
	DryRun        bool    `json:"dry_run"`
	DemandUnknown float64 `json:"demand_unknown_seconds,omitempty"`
	Pools         []Pool  `json:"pools"`
}

// Pool is the replicas of one version, as the scheduler sees them.
type Pool struct {
	Model    string            `json:"model"`
	Version  string            `json:"version"`
	Desired  int               `json:"desired"`
	Ready    int               `json:"ready"`
	Demand   float64           `json:"demand,omitempty"`
	Capacity float64           `json:"capacity,omitempty"`
	Blocked  float64           `json:"blocked_seconds,omitempty"`
	Alarm    bool              `json:"alarm,omitempty"`
	Problem  bool              `json:"problem,omitempty"`
	Pin      *serving.Pin      `json:"pin,omitempty"`
	Last     *serving.Decision `json:"last,omitempty"`
}

// Cluster is the processes of the system and the servers that it depends on.
type Cluster struct {
	Mode      string          `json:"mode"`
	Version   string          `json:"version,omitempty"`
	Processes []Process       `json:"processes"`
	Servers   []check.Finding `json:"servers"` // that the system depends on
	Alarms    []check.Finding `json:"alarms"`  // what a person should look at, of what kind it is
}

// Roles are those of processes whose number can be set.
var Roles = []string{"gateway", "scheduler", "web", "stream"}

// Process is one process of the system.
type Process struct {
	Role     string `json:"role"`
	Name     string `json:"name"`
	Addr     string `json:"addr,omitempty"`
	State    string `json:"state"` // "ok", "warn" or "failed"
	Detail   string `json:"detail,omitempty"`
	Leader   bool   `json:"leader,omitempty"`
	Revision uint64 `json:"revision,omitempty"`
}

// Withdrawn is a version that the policy of an app has tried, and taken its queries from because it
// failed, was late or was wrong more often than the others.
type Withdrawn struct {
	App     string
	Version serving.ModelID
}

// TrafficNow is every app in the last minute, the worst first.
type TrafficNow struct {
	At     time.Time    `json:"at"`
	Window int          `json:"window_seconds"`
	Apps   []AppTraffic `json:"apps"`
}

// AppTraffic is one app in the last minute. Without an answer it has no shares.
type AppTraffic struct {
	App        string             `json:"app"`
	SLO        int64              `json:"slo_micros"`
	Rate       float64            `json:"rate"`
	Attainment *float64           `json:"attainment,omitempty"`
	Defaults   *float64           `json:"defaults,omitempty"`
	P50        int64              `json:"p50_micros,omitempty"`
	P95        int64              `json:"p95_micros,omitempty"`
	P99        int64              `json:"p99_micros,omitempty"`
	CacheHits  float64            `json:"cache_hits,omitempty"`
	Causes     map[string]float64 `json:"causes,omitempty"`
}

// ModelTraffic is what a model version had to do with the answers of an app in the last minute.
type ModelTraffic struct {
	serving.ModelID
	Chosen   float64 // share of the app's queries for which it was asked
	Answered float64 // of these, share that it answered in time
	Agreed   float64 // of these, share that it answered as the app did
}

// AppSeries is an app over time. All series have the length of Times; nil is unknown.
type AppSeries struct {
	App        string                `json:"app"`
	SLO        int64                 `json:"slo_micros"`
	Step       int                   `json:"step_seconds"`
	Times      []int64               `json:"times"`
	Rate       []*float64            `json:"rate"`
	Attainment []*float64            `json:"attainment"`
	P50        []*float64            `json:"p50_micros"`
	P95        []*float64            `json:"p95_micros"`
	P99        []*float64            `json:"p99_micros"`
	CacheHits  []*float64            `json:"cache_hits"`
	Causes     map[string][]*float64 `json:"causes"`
}

// VersionSeries is a version's demand, capacity and replicas over time.
type VersionSeries struct {
	Model     string             `json:"model"`
	Version   string             `json:"version"`
	Step      int                `json:"step_seconds"`
	Times     []int64            `json:"times"`
	Demand    []*float64         `json:"demand"`
	Capacity  []*float64         `json:"capacity"`
	Desired   []*float64         `json:"desired"`
	Ready     []*float64         `json:"ready"`
	Decisions []serving.Decision `json:"decisions"`
}

// VersionStages is where the time of a version with stages goes.
type VersionStages struct {
	Model      string         `json:"model"`
	Version    string         `json:"version"`
	At         time.Time      `json:"at"`
	Window     int            `json:"window_seconds"` // that are known of what was asked for
	Bottleneck string         `json:"bottleneck,omitempty"`
	Stages     []StageTraffic `json:"stages"` // as queries meet them
}

// StageTraffic is a stage in a window of time. Times are in microseconds; nil is unknown.
type StageTraffic struct {
	Stage     string            `json:"stage"`
	After     []string          `json:"after"` // what it takes: stages, or serving.QueryInput
	Workers   int               `json:"workers"`
	Ready     int               `json:"ready"`
	Waiting   int               `json:"waiting"`
	Rate      *float64          `json:"rate,omitempty"`
	Busy      *float64          `json:"busy,omitempty"`
	BatchMean float64           `json:"batch_mean,omitempty"`
	Wait      *float64          `json:"wait_micros,omitempty"`
	WaitP99   *float64          `json:"wait_p99_micros,omitempty"`
	Run       *float64          `json:"run_micros,omitempty"`
	RunP99    *float64          `json:"run_p99_micros,omitempty"`
	Ended     map[string]uint64 `json:"ended,omitempty"`
}
