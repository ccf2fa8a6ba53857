package records

import (
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/topsail-serving/topsail/serving"
	"github.com/topsail-serving/topsail/stream"
)

// target is an app that a record is for.
type target struct {
	name  string
	app   *serving.App
	noApp *noApp // nil: the app is there
}

// noApp is why there is no app for what a record says.
type noApp struct {
	err       error
	condition string            // of the job, while records wait
	waits     bool              // the app may come
	rejection *stream.Rejection // of records that do not wait
}

// findApps is what a job cannot do while records name what no app is known for, as its conditions name it.
const findApps = "find the apps that records name"

// targets appends the apps for records that name something.
func (h *handler) targets(all []target, said string) []target {
	names, known := h.named(said)
	if !known {
		why := stream.Rejected(UnknownApp, "the record names the app %.100q, which is none of the job's: map it to an app (topsail stream map), and send the record again", said)
		return append(all, target{name: said, noApp: &noApp{errors.New(why.Text), findApps, h.unknown.wait(said, time.Now()), why}})
	}
	for _, name := range names {
		if slices.ContainsFunc(all, func(before target) bool { return before.name == name }) {
			continue
		}
		app, err := h.cfg.Scorer.App(name)
		t := target{name: name, app: app}
		if err != nil {
			t.noApp = h.noApp(name, err)
		}
		all = append(all, t)
	}
	return all
}

// noApp is what the scorer said in place of an app. Records wait while no catalog is known, and for the job's own app
// as long as it takes: without it all of them would be dead letters.
func (h *handler) noApp(name string, err error) *noApp {
	if !errors.Is(err, serving.ErrUnknownApp) || h.isOwn(name) {
		return &noApp{err, predicting(name), true, unknownApp(name)}
	}
	return &noApp{err, findApps, h.unknown.wait(name, time.Now()), unknownApp(name)}
}

// named are the apps for records that name something: operators' word is over the configuration's. A record may also
// name an app of the job by its own name.
func (h *handler) named(said string) (apps []string, known bool) {
	if apps, known = h.job.Gate.Apps(said); known {
		return apps, true
	}
	if apps, known = h.apps[said]; known {
		return apps, true
	}
	if said == "" {
		return h.own, len(h.own) > 0
	}
	if h.isOwn(said) || h.job.Gate.Serves(said) || h.serves(said) {
		return []string{said}, true
	}
	return nil, false
}

func (h *handler) isOwn(app string) bool { return slices.Contains(h.own, app) }

func (h *handler) serves(app string) bool {
	for _, apps := range h.apps {
		if slices.Contains(apps, app) {
			return true
		}
	}
	return false
}

// absences are what records wait for that there is not, and since when. It is forgotten when no record waits for it any
// more for a while. So records wait for it once, and not one after the other.
type absences struct {
	patience time.Duration

	mu   sync.Mutex
	seen map[string]absence
}

type absence struct{ since, last time.Time }

const (
	// mostAbsences bounds what is remembered: what comes beyond it is in the place of any other.
	mostAbsences = 1000
	// forgetAfter is how much longer than the patience an absence is remembered that no record meets.
	forgetAfter = time.Minute
)

func newAbsences(patience time.Duration) *absences {
	return &absences{patience: patience, seen: map[string]absence{}}
}

// wait says whether a record is to wait for what is absent now.
func (a *absences) wait(name string, now time.Time) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	at, known := a.seen[name]
	if !known || now.Sub(at.last) > a.patience+forgetAfter {
		at.since = now
	}
	at.last = now
	if !known && len(a.seen) >= mostAbsences {
		for other := range a.seen {
			delete(a.seen, other)
			break
		}
	}
	a.seen[name] = at
	return now.Sub(at.since) < a.patience
}
