package main

import (
	"testing"
	"time"
)

func TestAParetoTimeIsNowAndThenLong(t *testing.T) {
	const n = 20_000
	long := 0
	for range n {
		d := paretoTime()
		if d < paretoLeast {
			t.Fatalf("got %v", d)
		}
		if d > 66*time.Millisecond {
			long++
		}
	}
	if long < n/200 || long > n/50 { // one in a hundred
		t.Errorf("%d of %d are above 66 ms", long, n)
	}
}
