package scale

// The rules that decide.
const (
	ruleFixed      = "fixed"      // the version has a fixed number of replicas
	ruleBurst      = "burst"      // the demand of 2 s
	rulePanic      = "panic"      // the demand of 6 s
	ruleBacklog    = "backlog"    // what waits in streams
	ruleUnmeasured = "unmeasured" // it is not known what a replica can do
	ruleUnknown    = "unknown"    // the demand is not known
	ruleIdle       = "idle"       // no queries for long enough
	ruleWake       = "wake"       // queries and no replica
	ruleCooldown   = "cooldown"   // the last change is too recent
	ruleMin        = "min"
	ruleMax        = "max"
	rulePin        = "pin"     // an operator's word
	ruleRollout    = "rollout" // another version serves until this one can
	ruleOld        = "old"     // another version serves

	// The demand of 60 s goes by the metric of the ScaleSpec: "capacity",
	// "concurrency" or "rate".
)
