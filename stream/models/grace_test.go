package models

import (
	"errors"
	"testing"
	"time"
)

// TestGrace ends when an update has lacked something for long enough, and not before.
func TestGrace(t *testing.T) {
	away, missing, other := errAway{errors.New("away")}, errMissing{"app", "a"}, errors.New("no API")
	for _, one := range []struct {
		after []time.Duration // of the failures, from the first try
		errs  []error
		ends  bool
	}{
		{[]time.Duration{time.Hour}, []error{away}, false}, // a long try was the first to miss it
		{[]time.Duration{time.Hour, time.Hour + 59*time.Second}, []error{away, away}, false},
		{[]time.Duration{time.Hour, time.Hour + time.Minute}, []error{away, away}, true},
		{[]time.Duration{0, time.Minute}, []error{missing, missing}, true},
		{[]time.Duration{0, 30 * time.Second, time.Minute}, []error{away, other, away}, false},
		{[]time.Duration{0, 30 * time.Second, time.Hour}, []error{away, nil, away}, false}, // it was suspended
		{[]time.Duration{0, time.Hour}, []error{other, other}, false},
	} {
		g, began, ended := grace{most: time.Minute}, time.Now(), false
		for i, err := range one.errs {
			if err == nil {
				g.renew()
				continue
			}
			ended = g.end(err, began.Add(one.after[i])) != nil
		}
		if ended != one.ends {
			t.Errorf("after %v of %q it ends: %v", one.after, one.errs, ended)
		}
	}
}
