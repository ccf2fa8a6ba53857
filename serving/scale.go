package serving

import (
	"errors"
	"fmt"
	"time"
)

// MaxReplicas bounds the replicas of one version.
const MaxReplicas = 1000

// What a ScaleSpec can scale on.
const (
	ScaleOnCapacity    = "capacity"    // arrivals against what a replica can do within the SLO, from its measured latency; the default
	ScaleOnConcurrency = "concurrency" // queries in flight against a target for each replica
	ScaleOnRate        = "rate"        // queries a second against a target for each replica
)

// ScaleSpec says how many replicas of a version there may be, and what decides.
// A zero field means the default that the scheduler documents.
type ScaleSpec struct {
	Min          int      `json:"min" help:"least replicas; 0 scales to zero when idle"`
	Max          int      `json:"max" required:"yes" help:"most replicas; setting it makes their number follow demand, starting from replicas"`
	Metric       string   `json:"metric,omitempty" help:"capacity, concurrency or rate; by default capacity"`
	Target       float64  `json:"target,omitempty" help:"for each replica: queries in flight, or queries per second"`
	Utilisation  float64  `json:"utilisation,omitempty" help:"share of the capacity or target to aim at; 0 is the scheduler's default"`
	Idle         Duration `json:"idle_micros,omitempty" help:"time without queries before the last replica is stopped, in microseconds; 0 is the default"`
	StepUp       float64  `json:"step_up,omitempty" help:"largest factor by which one decision scales up; 0 is the default"`
	StepDown     float64  `json:"step_down,omitempty" help:"largest factor by which one decision scales down; 0 is the default"`
	CooldownUp   Duration `json:"cooldown_up_micros,omitempty" help:"least time between a change and a scale-up, in microseconds"`
	CooldownDown Duration `json:"cooldown_down_micros,omitempty" help:"least time between a change and a scale-down, in microseconds; 0 is the default"`
	DeadBand     float64  `json:"dead_band,omitempty" help:"relative difference below which the number stays; 0 is the default"`
}

func (s *ScaleSpec) check() error {
	if s == nil {
		return nil
	}
	var errs []error
	wrong := func(format string, args ...any) { errs = append(errs, fmt.Errorf("scale."+format, args...)) }
	if s.Min < 0 || s.Max < 1 || s.Min > s.Max || s.Max > MaxReplicas {
		wrong("min and max: use 0 ≤ min ≤ max and 1 ≤ max ≤ %d", MaxReplicas)
	}
	switch s.Metric {
	case "", ScaleOnCapacity:
		if s.Target != 0 {
			wrong("target is for the metrics \"concurrency\" and \"rate\"; for \"capacity\" the target is measured")
		}
	case ScaleOnConcurrency, ScaleOnRate:
		if !(s.Target > 0 && s.Target < 1e9) {
			wrong("target: the metric %q needs a target for each replica", s.Metric)
		}
	default:
		wrong("metric %q is unknown: use \"capacity\", \"concurrency\" or \"rate\"", s.Metric)
	}
	if !(s.Utilisation >= 0 && s.Utilisation <= 1) {
		wrong("utilisation must be at most 1")
	}
	if s.Idle < 0 || s.CooldownUp < 0 || s.CooldownDown < 0 {
		wrong("idle and the cooldowns must not be negative")
	}
	for name, step := range map[string]float64{"step_up": s.StepUp, "step_down": s.StepDown} {
		if step != 0 && !(step > 1 && step <= MaxReplicas) {
			wrong("%s is a factor between 1 and %d", name, MaxReplicas)
		}
	}
	if !(s.DeadBand >= 0 && s.DeadBand < 1) {
		wrong("dead_band must be below 1")
	}
	return errors.Join(errs...)
}

// Pin is an operator's word on a version's replicas, until it expires.
type Pin struct {
	Count  int       `json:"count" required:"yes"` // Paused: as many as there are
	Until  time.Time `json:"until,omitzero"`
	Reason string    `json:"reason,omitempty"`
}

// Paused in Pin.Count leaves the number of replicas as it is.
const Paused = -1

// Holds says whether the pin is in force; a nil pin never is.
func (p *Pin) Holds(now time.Time) bool {
	return p != nil && (p.Until.IsZero() || now.Before(p.Until))
}

func (p *Pin) check() error {
	if p == nil {
		return nil
	}
	if p.Count < Paused || p.Count > MaxReplicas {
		return fmt.Errorf("pin.count must be between 0 and %d, or %d to pause", MaxReplicas, Paused)
	}
	if len(p.Reason) > 1024 {
		return errors.New("pin.reason must be shorter than 1024 bytes")
	}
	return nil
}

// Decision is what the scheduler decided about one model version, and why.
type Decision struct {
	ModelID
	At      time.Time `json:"at"`
	From    int       `json:"from"`    // the count before
	To      int       `json:"to"`      // the count asked for
	Rule    string    `json:"rule"`    // the rule that decided: "capacity", "panic", "idle", "wake", "pin", …
	Reason  string    `json:"reason"`  // a sentence with the figures
	Outcome string    `json:"outcome"` // "applied", "dry_run", "blocked", "conflict", "failed"
	Error   string    `json:"error,omitempty"`
	Leader  string    `json:"leader"` // the scheduler that decided
	Fence   uint64    `json:"fence"`  // its token
}
