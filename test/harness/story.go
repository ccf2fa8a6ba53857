package harness

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// event is one thing that happened in the cluster.
type event struct {
	at   time.Time
	text string
}

// Story is what happened in the cluster since a moment, to be read after a failure:
// what Nomad did to tasks, which gateways the clients were given, what was awaited, and the ends of the
// logs of tasks that were touched.
func (r *Rig) Story(since time.Time) string {
	events, logs := r.taskEvents(since)
	r.mu.Lock()
	for _, e := range r.noted {
		if e.at.After(since) {
			events = append(events, e)
		}
	}
	r.mu.Unlock()
	slices.SortStableFunc(events, func(a, b event) int { return a.at.Compare(b.at) })
	var b strings.Builder
	for _, e := range events {
		fmt.Fprintf(&b, "%7.2f s  %s\n", e.at.Sub(since).Seconds(), e.text)
	}
	for _, log := range logs {
		if text := tail(log, 20); text != "" {
			fmt.Fprintf(&b, "%s ends with:\n%s\n", log, text)
		}
	}
	return b.String()
}

// taskEvents is what Nomad says that it did, and the logs of those tasks.
func (r *Rig) taskEvents(since time.Time) (events []event, logs []string) {
	list, _, err := r.Jobs.Allocations().List(nil)
	if err != nil {
		return []event{{time.Now(), "Nomad's events are unknown: " + err.Error()}}, nil
	}
	for _, alloc := range list {
		for task, state := range alloc.TaskStates {
			before := len(events)
			for _, e := range state.Events {
				if at := time.Unix(0, e.Time); at.After(since) {
					events = append(events, event{at, fmt.Sprintf("%s of %s, %s: %s: %s", task, alloc.JobID, alloc.ID[:8], e.Type, e.DisplayMessage)})
				}
			}
			if len(events) > before {
				found, _ := filepath.Glob(filepath.Join(r.Dir, "*", "data", "alloc", alloc.ID, "alloc", "logs", task+".std*"))
				logs = append(logs, found...)
			}
		}
	}
	return events, logs
}

// tail is the last lines of a file.
func tail(file string, lines int) string {
	text, err := os.ReadFile(file)
	if err != nil {
		return err.Error()
	}
	all := strings.Split(strings.TrimSpace(string(text)), "\n")
	return strings.Join(all[max(0, len(all)-lines):], "\n")
}
