package filestore

import (
	"testing"
	"time"

	"github.com/topsail-serving/topsail/serving"
	"github.com/topsail-serving/topsail/test/require"
)

// TestUsageWritersAreForgotten bounds the writers, not before nobody repeats their
// reports any more.
func TestUsageWritersAreForgotten(t *testing.T) {
	s := open(t, t.TempDir())
	begin := time.Unix(1e9, 0)
	turn := func(writer string, number uint64, after time.Duration) (taken bool, err error) {
		t.Helper()
		_ = s.update(func(in *tx) error {
			u, makeErr := makeUsage(in)
			if makeErr != nil {
				t.Fatal(makeErr)
			}
			taken, err = u.turn(writer, number, begin.Add(after))
			return nil
		})
		return taken, err
	}
	for _, writer := range []string{"old", "busy"} {
		if taken, err := turn(writer, 1, 0); taken || err != nil {
			t.Fatal(taken, err)
		}
	}
	if taken, err := turn("busy", 2, serving.UsageWriters); taken || err != nil {
		t.Fatal(taken, err)
	}
	if taken, err := turn("new", 1, serving.UsageWriters); taken || err != nil {
		t.Fatal(taken, err)
	}
	if taken, _ := turn("old", 1, serving.UsageWriters); !taken {
		t.Error("a writer is forgotten too early")
	}
	if taken, err := turn("newer", 1, serving.UsageWriters+time.Second); taken || err != nil {
		t.Fatal(taken, err)
	}
	if taken, _ := turn("busy", 2, serving.UsageWriters+time.Second); !taken {
		t.Error("a writer is forgotten that came later")
	}
	if taken, _ := turn("old", 1, serving.UsageWriters+time.Second); taken {
		t.Error("a writer is known forever")
	}
}

// TestUsageOfAFile has the objects of a configuration file counted from when they came
// first to when they go.
func TestUsageOfAFile(t *testing.T) {
	s := open(t, t.TempDir())
	merge := func(apps ...serving.App) {
		t.Helper()
		if _, err := s.MergeFile(t.Context(), apps, []serving.Version{version("m", "1")}, nil); err != nil {
			t.Fatal(err)
		}
	}
	both := []serving.UsageKey{{App: "a"}, {ModelID: serving.ModelID{Model: "m", Version: "1"}}}
	merge(app("a"))
	require.NoError(t, s.AddUsage(t.Context(), reportOf("a")))
	before, err := s.UsageOf(t.Context(), both)
	if err != nil || len(before) != 2 || before[0].Answers != 1 {
		t.Fatalf("got %+v and error %v", before, err)
	}
	merge(app("a")) // the next start
	changed := app("a")
	changed.SLO = serving.Duration(time.Minute)
	merge(changed)
	if after, err := s.UsageOf(t.Context(), both); err != nil || len(after) != 2 || after[0] != before[0] || after[1] != before[1] {
		t.Errorf("got %+v and error %v, want %+v", after, err, before)
	}
	merge()
	if after, err := s.UsageOf(t.Context(), both); err != nil || len(after) != 1 || after[0] != before[1] {
		t.Errorf("got %+v and error %v", after, err)
	}
}
