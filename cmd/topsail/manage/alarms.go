package manage

import (
	"cmp"
	"fmt"
	"slices"

	"topsail/web/api"
)

const (
	lowAttainment = 0.99 // of predictions among the answers of a minute
	someTraffic   = 0.2  // answers a second; of fewer a share says little
)

// Alarms are what a person should look at, the worst first.
func Alarms(servers []api.Server, pools []api.Pool, replicas []api.Replica, traffic api.TrafficNow) []api.Alarm {
	all := slices.Concat(serverAlarms(servers), appAlarms(traffic), poolAlarms(pools), replicaAlarms(replicas))
	slices.SortStableFunc(all, func(a, b api.Alarm) int { return cmp.Compare(a.Severity, b.Severity) }) // failed, warn
	return all
}

func serverAlarms(servers []api.Server) []api.Alarm {
	list := []api.Alarm{}
	for _, s := range servers {
		if s.State == "failed" || s.State == "warn" {
			list = append(list, api.Alarm{Severity: s.State, Text: s.Name + ": " + s.Detail, Next: s.Next, Kind: "server", Name: s.Name})
		}
	}
	return list
}

func appAlarms(traffic api.TrafficNow) []api.Alarm {
	var list []api.Alarm
	for _, a := range traffic.Apps {
		if a.Rate < someTraffic || a.Attainment >= lowAttainment {
			continue
		}
		alarm := api.Alarm{
			Severity: "warn", Kind: "app", Name: a.App,
			Text: fmt.Sprintf("app %s gives predictions to %.1f %% of its queries; the others get the default", a.App, 100*a.Attainment),
		}
		worst, most := "", 0.0
		for cause, rate := range a.Causes {
			if rate > most || rate == most && cause < worst {
				worst, most = cause, rate
			}
		}
		alarm.Next = causeAdvice(worst)
		if a.Attainment < 0.5 {
			alarm.Severity = "failed"
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
		"draining":        "replicas end without leaving first: look at why they stop",
		"model_error":     "the model raises errors: look at the logs of its replicas",
		"dropped":         "a stage of the model drops inputs: if that is not meant, look at its reasons in the answers",
		"container_error": "containers die or hang: look at the logs of the replicas",
	}[cause]
}

func poolAlarms(pools []api.Pool) []api.Alarm {
	var list []api.Alarm
	for _, p := range pools {
		name := p.Model + ":" + p.Version
		switch {
		case p.Desired > 0 && p.Ready == 0:
			list = append(list, api.Alarm{Severity: "failed", Kind: "version", Name: name,
				Text: fmt.Sprintf("%s has no ready replica, of %d wanted", name, p.Desired), Next: "look at the state and the logs of its replicas"})
		case p.Alarm || p.Problem:
			list = append(list, api.Alarm{Severity: "warn", Kind: "version", Name: name,
				Text: fmt.Sprintf("%s has %d of %d replicas, and cannot be scaled as decided", name, p.Ready, p.Desired), Next: "the decisions on the scaling page say why"})
		}
	}
	return list
}

func replicaAlarms(replicas []api.Replica) []api.Alarm {
	var list []api.Alarm
	for _, r := range replicas {
		if r.State == "failed" || r.State == "ejected" {
			list = append(list, api.Alarm{Severity: "warn", Kind: "replica", Name: r.ID,
				Text: fmt.Sprintf("replica %s is %s: %s", r.ID, r.State, r.Reason), Next: "its logs say more"})
		}
	}
	return list
}
