package check

import (
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"
)

// TestRun: checks run side by side, each for at most its time, and their order stays.
func TestRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hangs := func(ctx context.Context) []Finding {
			<-ctx.Done()
			return []Finding{Broken(ctx, "hangs", ctx.Err(), "wait")}
		}
		begun := time.Now()
		all := Run(t.Context(), []Check{hangs, func(context.Context) []Finding {
			return []Finding{Good("one", "a\n\tb"), Broken(t.Context(), "two", errors.New(`dial "http://ada:secret@host:1"`), "")}
		}, hangs})
		if took := time.Since(begun); took != Within {
			t.Errorf("took %v", took)
		}
		want := []Finding{
			{Name: "hangs", State: Failed, Detail: "no answer within 5s", Next: "wait"}, {Name: "one", State: OK, Detail: "a b", Next: ""},
			{Name: "two", State: Failed, Detail: `dial "http://host:1"`, Next: ""}, {Name: "hangs", State: Failed, Detail: "no answer within 5s", Next: "wait"},
		}
		for i := range want {
			want[i].Checked = time.Now().UTC()
		}
		if !slices.Equal(all, want) {
			t.Fatalf("got %+v", all)
		}
	})
}

func TestProblems(t *testing.T) {
	all := []Finding{Warning("a", "slow", ""), Good("b", "fine"), Bad("c", "down", "start it"), Warning("d", "full", "")}
	if got := Problems(all); !slices.Equal(got, []Finding{all[2], all[0], all[3]}) {
		t.Errorf("got %+v", got)
	}
	if got := Problems(nil); got != nil {
		t.Errorf("of nothing: got %+v", got)
	}
}
