package gocontainer

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/topsail-serving/topsail/rpc"
	"github.com/topsail-serving/topsail/serving"
)

func TestPartsComeAtOnceAndInOrder(t *testing.T) {
	atDesk(t, partsToo, spell, func(d *desk) {
		d.ask(1, rpc.AskParts, "abc")
		pass(0)
		d.expect(1, "0 ok a +")
		pass(time.Second)
		d.expect(1, "0 ok a +", "0 ok b +")
		d.ask(2, rpc.AskParts, "x") // beside it
		pass(0)
		d.expect(2, "0 ok x +")
		pass(2 * time.Second)
		d.expect(1, "0 ok a +", "0 ok b +", "0 ok c +", "0 ok abc END")
		d.expect(2, "0 ok x +", "0 ok x END")
	})
}

func TestPartsThatAreNotWanted(t *testing.T) {
	atDesk(t, partsToo, spell, func(d *desk) {
		d.ask(1, 0, "abc")
		pass(time.Minute)
		d.expect(1, "0 ok abc END")
	})
}

func TestQueriesBeyondTheConcurrency(t *testing.T) {
	cfg := partsToo
	cfg.Concurrency = 2
	atDesk(t, cfg, spell, func(d *desk) {
		d.ask(1, 0, "a")
		d.ask(2, 0, "bb")
		d.ask(3, 0, "c")
		pass(0)
		d.expect(3, "0 full the container runs as many queries as it may END")
		pass(time.Second)
		d.expect(1, "0 ok a END")
		d.ask(4, 0, "d")
		pass(time.Minute)
		d.expect(4, "0 ok d END")
		d.expect(2, "0 ok bb END")
	})
}

func TestCancel(t *testing.T) {
	var failed error
	predict := func(ctx context.Context, q *Query, part func(...serving.Value) error) Result {
		_ = part(q.Inputs[0])
		<-ctx.Done()
		failed = part(q.Inputs[0])
		return Result{Output: serving.Text("done all the same")}
	}
	cfg := partsToo
	cfg.Concurrency = 1
	atDesk(t, cfg, predict, func(d *desk) {
		d.ask(1, rpc.AskParts, "a")
		pass(time.Minute)
		d.expect(1, "0 ok a +")
		d.cancel(7) // of a batch that is not there
		d.cancel(1)
		pass(0)
		d.expect(1, "0 ok a +", "0 cancelled the query was cancelled END")
		if !errors.Is(failed, errCancelled) {
			t.Errorf("part said %v", failed)
		}
		d.ask(2, rpc.AskParts, "b") // the place is free
		pass(0)
		d.cancel(1)
		pass(0)
		d.expect(2, "0 ok b +")
	})
	if !errors.Is(failed, errLost) {
		t.Errorf("after the connection was lost, part said %v", failed)
	}
}

func TestAPanicIsTheQuerysError(t *testing.T) {
	predict := func(ctx context.Context, q *Query, part func(...serving.Value) error) Result {
		_ = part(serving.Text("a"))
		if string(q.Inputs[0].Data) == "bad" {
			panic("no idea")
		}
		return Result{Err: Drop("not today")}
	}
	atDesk(t, partsToo, predict, func(d *desk) {
		d.ask(1, rpc.AskParts, "bad")
		d.ask(2, 0, "good")
		pass(0)
		d.expect(1, "0 ok a +", "0 model_error panic: no idea END")
		d.expect(2, "0 model_error not today END") // the sidecar knows of no dropped inputs
	})
}

func TestAWholeThatIsLeftOut(t *testing.T) {
	var late func(...serving.Value) error
	predict := func(_ context.Context, q *Query, part func(...serving.Value) error) Result {
		if string(q.Inputs[0].Data) == "unwanted" {
			return Result{Err: part(serving.Text("a"))}
		}
		late = part
		if err := part(); !errors.Is(err, errNoValue) {
			t.Errorf("part of no value said %v", err)
		}
		if err := part(serving.Text("a")); err != nil {
			t.Error(err)
		}
		return Result{}
	}
	atDesk(t, partsToo, predict, func(d *desk) {
		d.ask(1, rpc.AskParts, "")
		d.ask(2, 0, "unwanted")
		pass(0)
		if err := late(serving.Text("b")); !errors.Is(err, errEnded) {
			t.Errorf("a part after the answer said %v", err)
		}
		pass(0)
		d.expect(1, "0 ok a +", "0 ok 0 values, <nil> END")
		d.expect(2, "0 model_error the model returned no output END")
	})
}

func TestAnOutputThatIsTooLarge(t *testing.T) {
	large := serving.Value{DType: serving.String, Data: make([]byte, rpc.MinMaxFrame)}
	predict := func(_ context.Context, _ *Query, part func(...serving.Value) error) Result {
		if err := part(large); !errors.Is(err, rpc.ErrTooLarge) {
			t.Errorf("part said %v", err)
		}
		return Result{Output: large}
	}
	atDesk(t, partsToo, predict, func(d *desk) {
		d.ask(1, rpc.AskParts, "")
		pass(0)
		d.expect(1, "0 model_error the output is larger than the sidecar accepts END")
	})
}

// What stands behind a container may be overloaded or gone, which is not the model's answer.
func TestUnavailable(t *testing.T) {
	predict := func(_ context.Context, q *Query, _ func(...serving.Value) error) Result {
		return Result{Err: fmt.Errorf("engine: %w", Unavailable{Why: "no room", Full: string(q.Inputs[0].Data) == "full"})}
	}
	atDesk(t, partsToo, predict, func(d *desk) {
		d.ask(1, 0, "full")
		d.ask(2, 0, "gone")
		pass(0)
		d.expect(1, "0 full engine: no room END")
		d.expect(2, "0 container engine: no room END")
	})
}
