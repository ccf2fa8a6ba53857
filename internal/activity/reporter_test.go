package activity

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"
)

// TestReporter begins at 0.3 s, with intervals of 2 s, and ends at 6.5 s.
func TestReporter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		base := time.Now() // a whole second in a bubble, and an even one
		time.Sleep(300 * time.Millisecond)
		var got []string
		g := &gateway{answers: map[string]float64{"ok": 1}}
		r := Reporter{Counts: g.counting(), Every: 2 * time.Second, Write: func(began time.Time, points []Point, _ int) {
			got = append(got, fmt.Sprint(began.Sub(base), " ", points[0].Fields["answers_ok"]))
		}}
		ctx, stop := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() { defer close(done); r.Run(ctx) }()
		time.Sleep(2 * time.Second) // 2.3
		g.answers["ok"] = 4
		time.Sleep(4 * time.Second) // 6.3: nothing from 4 on
		g.answers["ok"] = 9
		time.Sleep(200 * time.Millisecond)
		stop()
		<-done
		if want := []string{"0s 1", "2s 3", "6s 5"}; !slices.Equal(got, want) {
			t.Errorf("reports %q, want %q", got, want)
		}
	})
}
