package scale

import "github.com/topsail-serving/topsail/serving"

// Load is what a version is asked, and what its ready replicas can answer within the
// SLO, in queries a second.
type Load struct {
	Demand, Capacity float64
	DemandKnown      bool
	CapacityKnown    bool
}

// LoadOf is the load that a decision went by: the demand of the window that decided it,
// and that of the stable one where none did. s is the state after the decision.
func LoadOf(s State, in Input, d serving.Decision) Load {
	var l Load
	if in.Demand.Unknown == "" {
		l.Demand, l.DemandKnown = in.Demand.Stable.Rate, true
		switch d.Rule {
		case ruleBurst:
			l.Demand = in.Demand.Burst.Rate
		case rulePanic, ruleBacklog:
			l.Demand = max(l.Demand, in.Demand.Panic.Rate)
		}
	}
	if each := Capacity(s.Profile, in.SLO, in.Version.Batch.MaxSize); each > 0 {
		l.Capacity, l.CapacityKnown = float64(in.Ready)*each, true
	}
	return l
}
