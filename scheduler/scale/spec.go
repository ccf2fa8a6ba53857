package scale

import (
	"cmp"
	"time"

	"github.com/topsail-serving/topsail/serving"
)

// Defaults of a ScaleSpec, and what no spec changes.
const (
	Utilisation  = 0.7
	Idle         = time.Minute
	StepUp       = 1000
	StepDown     = 2
	CooldownDown = 30 * time.Second // CooldownUp is none
	DeadBand     = 0.1

	// Kept is for how long at least a version that was replaced keeps its replicas,
	// so that a rollback is instant.
	Kept = 5 * time.Minute

	wakes   = 10 * time.Second // how long a wake is acted upon
	starts  = 10 * time.Minute // a first replica that is not ready is not idle so long
	settles = 15 * time.Minute // an old version waits for the current one so long

	panics = 2   // times what is ready, for panic
	chance = 3   // standard deviations that may be chance
	enough = 0.5 // the share of the stable window to be known before anything is taken away
)

// withDefaults is the spec with every zero field filled in.
func withDefaults(s serving.ScaleSpec) serving.ScaleSpec {
	s.Metric = cmp.Or(s.Metric, serving.ScaleOnCapacity)
	s.Utilisation = cmp.Or(s.Utilisation, Utilisation)
	s.Idle = serving.Duration(cmp.Or(s.Idle.Std(), Idle))
	s.StepUp = cmp.Or(s.StepUp, StepUp)
	s.StepDown = cmp.Or(s.StepDown, StepDown)
	s.CooldownDown = serving.Duration(cmp.Or(s.CooldownDown.Std(), CooldownDown))
	s.DeadBand = cmp.Or(s.DeadBand, DeadBand)
	return s
}
