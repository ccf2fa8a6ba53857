// Package wait waits in tests for what other goroutines and processes bring about.
package wait

import "time"

// limit only ends a hang: nothing that is waited for takes that long.
const limit = 2 * time.Minute

// T is a test: of package testing, or one case of a property.
type T interface {
	Helper()
	Fatalf(format string, args ...any)
}

// Until waits until something holds: it is looked at again and again, at first after 200 µs and at last every 20 ms. What does not
// come about ends the test, with what was waited for and what the functions say of how it is.
func Until(t T, what string, holds func() bool, say ...func() string) {
	t.Helper()
	const seldom = 20 * time.Millisecond
	pause := 200 * time.Microsecond
	for end := time.Now().Add(limit); !holds(); pause = min(2*pause, seldom) {
		if time.Now().After(end) {
			for _, s := range say {
				what += "\n" + s()
			}
			t.Fatalf("not within %v: %s", limit, what)
		}
		time.Sleep(pause)
	}
}
