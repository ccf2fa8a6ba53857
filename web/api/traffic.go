package api

import (
	"context"
	"net/http"
	"slices"
	"time"

	"github.com/topsail-serving/topsail/serving"
	"github.com/topsail-serving/topsail/web/rest"
)

const (
	minWindow     = 60 // seconds
	maxWindow     = 7 * 24 * 3600
	defaultWindow = 15 * 60

	maxStagesWindow = 15 * 60
	stagesWindow    = time.Minute // by default
)

func (l *live) getTraffic(w http.ResponseWriter, r *http.Request) error {
	return rest.Respond(w, http.StatusOK, l.view(r).traffic(l.Traffic.Now()))
}

// traffic is that of the present apps that the caller sees, with their present objectives.
func (v view) traffic(all TrafficNow) TrafficNow {
	apps := make([]AppTraffic, 0, len(all.Apps))
	for _, t := range all.Apps {
		if app := v.cat.Apps[t.App]; app != nil && v.scope.seesApp(t.App) {
			t.SLO = app.SLO.Std().Microseconds()
			apps = append(apps, t)
		}
	}
	all.Apps = apps
	return all
}

func (l *live) getAppTraffic(w http.ResponseWriter, r *http.Request) error {
	window, err := windowOf(r)
	if err != nil {
		return err
	}
	app, err := scopeOf(r).app(l.Store.Catalog(), r.PathValue("app"))
	if err != nil {
		return err
	}
	s := l.Traffic.App(app.Name, window)
	s.SLO = app.SLO.Std().Microseconds()
	return rest.Respond(w, http.StatusOK, s)
}

func (l *live) getVersionTraffic(w http.ResponseWriter, r *http.Request) error {
	window, err := windowOf(r)
	if err != nil {
		return err
	}
	version, err := scopeOf(r).version(l.Store.Catalog(), versionOf(r))
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(r.Context(), within)
	defer cancel()
	decisions, err := l.Scheduler.Decisions(ctx, maxDecisions, version.ModelID)
	if err != nil {
		return err
	}
	s := l.Traffic.Version(version.ModelID, window)
	since := l.Now().Add(-window)
	s.Decisions = slices.DeleteFunc(append([]serving.Decision{}, decisions...), func(d serving.Decision) bool { return d.At.Before(since) })
	return rest.Respond(w, http.StatusOK, s)
}

// getVersionStages returns the stages that its replicas announce, which need not be those that the
// version names, and the latter where there is no replica.
func (l *live) getVersionStages(w http.ResponseWriter, r *http.Request) error {
	seconds, err := rest.Number(r, "window", minWindow, maxStagesWindow, int(stagesWindow/time.Second))
	if err != nil {
		return err
	}
	version, err := scopeOf(r).version(l.Store.Catalog(), versionOf(r))
	if err != nil {
		return err
	}
	s := l.Traffic.Stages(version.ModelID, "", time.Duration(seconds)*time.Second)
	if len(s.Stages) == 0 {
		s.Stages = planned(version.Stages)
	}
	return rest.Respond(w, http.StatusOK, s)
}

// planned are stages that are not running.
func planned(p serving.Pipeline) []StageTraffic {
	list := []StageTraffic{}
	for i, s := range p {
		list = append(list, StageTraffic{Stage: s.Name, After: p.Sources(i)})
	}
	return list
}

func windowOf(r *http.Request) (time.Duration, error) {
	seconds, err := rest.Number(r, "window", minWindow, maxWindow, defaultWindow)
	return time.Duration(seconds) * time.Second, err
}
