package inference

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/topsail-serving/topsail/internal/retry"
	"github.com/topsail-serving/topsail/serving"
)

// IndexEntry is one model, or one version of it, in the index of the repository.
type IndexEntry struct {
	Name    string `json:"name"`
	Version string `json:"version,omitempty"`
	State   string `json:"state"`
	Reason  string `json:"reason"`
}

// States of entries.
const (
	StateReady       = "READY"
	StateUnavailable = "UNAVAILABLE"
)

// Index lists apps, with the versions of those with one model, or of these only what is ready.
func Index(apps []*serving.App, cat *serving.Catalog, ready func(app, version string) (bool, error), readyOnly bool) []IndexEntry {
	slices.SortFunc(apps, func(a, b *serving.App) int { return strings.Compare(a.Name, b.Name) })
	entries := []IndexEntry{}
	for _, app := range apps {
		versions := Versions(app, cat)
		if len(versions) == 0 {
			versions = []string{""}
		}
		for _, version := range versions {
			e := IndexEntry{Name: app.Name, Version: version, State: StateReady}
			if is, err := ready(app.Name, version); err != nil || !is {
				e.State, e.Reason = StateUnavailable, "no replica is ready"
			}
			if e.State == StateReady || !readyOnly {
				entries = append(entries, e)
			}
		}
	}
	return entries
}

// Repository is what starts the replicas of apps. Its methods fail where there is no such app.
type Repository interface {
	// Ready says whether a version of an app's model has a replica, or if it is empty, all that the app needs.
	Ready(app, version string) (bool, error)
	// Wake has replicas started where there are none.
	Wake(app, version string) error
}

const (
	// loadWithin is how long Load waits.
	loadWithin = 8 * time.Second
	// lookEvery is how often it looks.
	lookEvery = 50 * time.Millisecond
)

// NotLoaded is why a model could not be loaded or unloaded.
type NotLoaded struct {
	Text  string
	Later bool // it may be, later
}

func (e *NotLoaded) Error() string { return e.Text }

// Load has replicas of an app started, and waits for a while until they are ready. Its error is the
// repository's, or a NotLoaded.
func Load(ctx context.Context, r Repository, app string) error {
	ctx, cancel := context.WithTimeout(ctx, loadWithin)
	defer cancel()
	for {
		if err := r.Wake(app, ""); err != nil { // also where another model of the app is ready
			return err
		}
		if ready, err := r.Ready(app, ""); err != nil || ready {
			return err
		}
		if !retry.Sleep(ctx, lookEvery) {
			return &NotLoaded{fmt.Sprintf("replicas of model %q are being started, which takes longer than %v: ask whether it is ready", app, loadWithin), true}
		}
	}
}

// Unload lets an app's models sleep: replicas of versions that scale to zero are stopped when no queries
// come. Its error is a NotLoaded: a version keeps replicas.
func Unload(app *serving.App, cat *serving.Catalog) error {
	for _, name := range app.Asked() {
		m := cat.Models[name]
		if m == nil || m.Versions[m.Current] == nil {
			continue
		}
		if v := m.Versions[m.Current]; v.Scale == nil || v.Scale.Min > 0 {
			return &NotLoaded{Text: fmt.Sprintf("%s keeps replicas: set its scale.min to 0, and it sleeps when no queries come", v.ModelID)}
		}
	}
	return nil
}
