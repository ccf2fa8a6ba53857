package manage

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/topsail-serving/topsail/internal/check"
	"github.com/topsail-serving/topsail/serving"
	"github.com/topsail-serving/topsail/web/api"
	"github.com/topsail-serving/topsail/web/traffic"
)

const (
	lowAttainment = 0.99 // of predictions among the answers of a minute
	someTraffic   = 0.2  // answers a second; of fewer a share says little
)

// Alarms are what a person should look at, the worst first.
func Alarms(servers []check.Finding, measured *traffic.Collector, replicas []api.Replica) []check.Finding {
	return check.Problems(slices.Concat(ofServers(servers), ofApps(measured.Now()), ofPools(measured.Pools(), replicas),
		ofFailovers(measured.FailedOver()), ofWithdrawn(measured.Withdrawn()), ofStreams(measured.Streams()), ofReplicas(replicas)))
}

func ofFailovers(failed []serving.ModelID) []check.Finding {
	var list []check.Finding
	for _, id := range failed {
		list = append(list, check.Finding{
			State: check.Failed, Kind: "version", Name: id.String(),
			Detail: fmt.Sprintf("%v has lost all its replicas; the version before it answers", id), Next: "look at the state and the logs of its replicas",
		})
	}
	return list
}

func ofWithdrawn(withdrawn []api.Withdrawn) []check.Finding {
	var list []check.Finding
	for _, w := range withdrawn {
		list = append(list, check.Finding{
			State: check.Warn, Kind: "app", Name: w.App, Withdrawn: w.Version.String(),
			Detail: fmt.Sprintf("the policy of app %s has withdrawn %v, which did worse than the version beside it", w.App, w.Version),
			Next:   fmt.Sprintf("`topsail app insight %s` says why; another canary, or policy, ends this", w.App),
		})
	}
	return list
}

// streamsWait is for how long a stream may wait for the capacity of its model, in seconds.
const streamsWait = 30

func ofStreams(streams map[string]*api.StreamNow) []check.Finding {
	var list []check.Finding
	for _, name := range slices.Sorted(maps.Keys(streams)) {
		now := streams[name]
		for _, condition := range now.Conditions {
			list = append(list, check.Finding{
				State: check.Failed, Kind: "stream", Name: name, Detail: fmt.Sprintf("stream %s %s", name, condition),
				Next: "see the log of the process that serves it, or /streams on its ops port",
			})
		}
		if now.Waiting >= streamsWait && len(now.Conditions) == 0 {
			list = append(list, check.Finding{
				State: check.Warn, Kind: "stream", Name: name, Detail: fmt.Sprintf("no record of stream %s has been answered for %.0f s", name, now.Waiting),
				Next: "look at the replicas of its model",
			})
		}
	}
	return list
}

// ofServers are findings about servers as they read beside those of other things.
func ofServers(servers []check.Finding) []check.Finding {
	list := slices.Clone(servers)
	for i, s := range list {
		list[i].Kind, list[i].Detail, list[i].Checked = "server", s.Name+": "+s.Detail, time.Time{}
	}
	return list
}

func ofApps(traffic api.TrafficNow) []check.Finding {
	var list []check.Finding
	for _, a := range traffic.Apps {
		if a.Rate < someTraffic || a.Attainment == nil || *a.Attainment >= lowAttainment {
			continue
		}
		alarm := check.Finding{
			State: check.Warn, Kind: "app", Name: a.App,
			Detail: fmt.Sprintf("more than 1 %% of the answers of app %s are defaults", a.App), // of which figures say how many
		}
		worst, most := "", 0.0
		for cause, rate := range a.Causes {
			if rate > most || rate == most && cause < worst {
				worst, most = cause, rate
			}
		}
		alarm.Next = causeAdvice(worst)
		if *a.Attainment < 0.5 {
			alarm.State, alarm.Detail = check.Failed, fmt.Sprintf("more than half of the answers of app %s are defaults", a.App)
		}
		list = append(list, alarm)
	}
	return list
}

// causeAdvice is what to do when most defaults have a cause.
func causeAdvice(cause string) string {
	return map[string]string{
		"missed_slo":      "the models are slower than the objective: more replicas, or a longer objective",
		"no_replica":      "no replica is ready: look at the replicas of its models",
		"refused_full":    "the load is beyond the capacity: more replicas",
		"refused_late":    "the load is beyond the capacity, or the objective is shorter than the model takes: more replicas, or a longer objective",
		"draining":        "replicas end without draining first: find out why they stop",
		"model_error":     "the model raises errors: look at the logs of its replicas",
		"bad_input":       "clients send inputs that the model does not take: see the reasons in the answers",
		"dropped":         "a stage of the model drops inputs: if this is not intended, see its reasons in the answers",
		"container_error": "containers die or hang: look at the logs of the replicas",
	}[cause]
}

func ofPools(pools []api.Pool, replicas []api.Replica) []check.Finding {
	var list []check.Finding
	for _, p := range pools {
		name := p.Model + ":" + p.Version
		// For the first time, as after each deployment.
		starting := slices.ContainsFunc(replicas, func(r api.Replica) bool {
			return r.Model == p.Model && r.Version == p.Version && r.State == "starting" && r.Restarts == 0
		})
		switch {
		case p.Desired > 0 && p.Ready == 0 && !starting:
			list = append(list, check.Finding{State: check.Failed, Kind: "version", Name: name,
				Detail: fmt.Sprintf("%s has no ready replica, of %d wanted", name, p.Desired), Next: "look at the state and the logs of its replicas"})
		case p.Alarm || p.Problem:
			list = append(list, check.Finding{State: check.Warn, Kind: "version", Name: name,
				Detail: fmt.Sprintf("%s has %d of %d replicas, and cannot be scaled as decided", name, p.Ready, p.Desired), Next: "see the decisions on the scaling page"})
		}
	}
	return list
}

func ofReplicas(replicas []api.Replica) []check.Finding {
	var list []check.Finding
	for _, r := range replicas {
		if r.State == "failed" || r.State == "ejected" {
			list = append(list, check.Finding{State: check.Warn, Kind: "replica", Name: r.ID,
				Detail: fmt.Sprintf("replica %s is %s: %s", r.ID, r.State, r.Reason), Next: "see its logs"})
		}
	}
	return list
}
