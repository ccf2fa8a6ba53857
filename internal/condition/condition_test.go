package condition

import (
	"bytes"
	"errors"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"
)

// logged is a log without times.
func logged() (*slog.Logger, *bytes.Buffer) {
	var lines bytes.Buffer
	return slog.New(slog.NewTextHandler(&lines, &slog.HandlerOptions{ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
		if a.Key == slog.TimeKey {
			return slog.Attr{}
		}
		return a
	}})), &lines
}

func TestCondition(t *testing.T) {
	away, full := errors.New("away"), errors.New("full")
	for name, tt := range map[string]struct {
		c    *Condition
		want string
	}{
		"once": {
			&Condition{Begins: "cannot write", Ends: "writes again"},
			"level=WARN msg=\"cannot write\" err=away\nlevel=INFO msg=\"writes again\" after=50s\nlevel=WARN msg=\"cannot write\" err=away\n",
		},
		"now and then": {
			&Condition{Begins: "cannot write", Ends: "writes again", Every: 20 * time.Second},
			"level=WARN msg=\"cannot write\" err=away\nlevel=WARN msg=\"cannot write\" err=full\nlevel=WARN msg=\"cannot write\" err=full\n" +
				"level=INFO msg=\"writes again\" after=50s\nlevel=WARN msg=\"cannot write\" err=away\n",
		},
		"as an error, without an end": {
			&Condition{Begins: "cannot write", Level: slog.LevelError},
			"level=ERROR msg=\"cannot write\" err=away\nlevel=ERROR msg=\"cannot write\" err=away\n",
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				log, lines := logged()
				c := tt.c
				c.Log = log
				c.Note(nil)
				for _, err := range []error{away, away, full, full, full} {
					if c.Note(err); c.Err() != err {
						t.Errorf("it is %v, want %v", c.Err(), err)
					}
					time.Sleep(10 * time.Second)
				}
				for range 2 {
					if c.Note(nil); c.Err() != nil {
						t.Errorf("it is %v", c.Err())
					}
				}
				c.Note(away)
				if lines.String() != tt.want {
					t.Errorf("the log has\n%swant\n%s", lines, tt.want)
				}
			})
		})
	}
}
