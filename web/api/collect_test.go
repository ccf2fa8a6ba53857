package api

import (
	"context"
	"slices"
	"testing"
	"time"
)

// idle remembers as a store does.
type idle struct {
	w     *world
	since map[string]time.Time
}

func (i idle) UnusedBundles(_ context.Context, digests []string) (map[string]time.Time, error) {
	for digest := range i.since {
		if !slices.Contains(digests, digest) {
			delete(i.since, digest)
		}
	}
	for _, digest := range digests {
		if _, seen := i.since[digest]; !seen {
			i.since[digest] = i.w.now
		}
	}
	return i.since, nil
}

// A bundle goes when no version has used it for long, and not before.
func TestCollect(t *testing.T) {
	w := having(t)
	const zip = "application/zip"
	used := read[Artifact](t, w.ask("POST", "/artifacts", `{"format":1,"runtime":"python","input_type":"doubles","files":{}}`, "Content-Type", zip)).Digest
	never := read[Artifact](t, w.ask("POST", "/artifacts", `{"format":1,"runtime":"python","input_type":"floats","files":{}}`, "Content-Type", zip)).Digest
	expect(t, w.ask("POST", "/models/a-model/versions", `{"version":"1","bundle":"`+used+`"}`), 201)
	memory := idle{w, map[string]time.Time{}}
	collect := func(after time.Duration, want ...string) {
		t.Helper()
		w.now = w.now.Add(after)
		if gone, err := (&API{w.api, w.handler}).Collect(t.Context(), memory, time.Hour); err != nil || !slices.Equal(gone, want) {
			t.Errorf("%v are gone, error %v; want %v", gone, err, want)
		}
	}
	collect(0)
	collect(59 * time.Minute)
	collect(time.Minute, never)
	expect(t, w.ask("DELETE", "/models/a-model", ""), 204)
	collect(24 * time.Hour) // it is seen for the first time
	expect(t, w.ask("POST", "/models/a-model/versions", `{"version":"2","bundle":"`+used+`"}`), 201)
	collect(24 * time.Hour)
	expect(t, w.ask("DELETE", "/models/a-model", ""), 204)
	collect(0)
	collect(time.Hour, used)
	collect(time.Hour)
}
