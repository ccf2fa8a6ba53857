package doctor

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"
)

// Within bounds every check.
const Within = 5 * time.Second

// Check finds out about one thing. It returns soon after its context has ended.
type Check func(ctx context.Context) []Finding

// Run runs the checks side by side and returns what they found, in their order.
func Run(ctx context.Context, checks []Check) []Finding {
	found := make([][]Finding, len(checks))
	var all sync.WaitGroup
	for i, check := range checks {
		all.Go(func() {
			ctx, cancel := context.WithTimeoutCause(ctx, Within, fmt.Errorf("no answer within %v", Within))
			defer cancel()
			found[i] = check(ctx)
		})
	}
	all.Wait()
	list := slices.Concat(found...)
	for i, f := range list {
		list[i] = f.tidy()
	}
	return list
}

// Broken is a finding that something does not work. The end of the context has a message of its
// own.
func Broken(ctx context.Context, check string, err error, next string) Finding {
	if cause := context.Cause(ctx); cause != nil && errors.Is(err, ctx.Err()) {
		err = cause
	}
	return Finding{Check: check, State: Fail, Detail: err.Error(), Next: next}
}

// How far the clocks of two machines may be apart: reports of demand go by the second,
// and the scheduler reads those of the last ones.
const (
	skewTold    = 2 * time.Second
	skewHarmful = 10 * time.Second
)

// Clock judges how far the clock of a server is ahead of ours; of one that does not
// tell, there is nothing to say.
func Clock(check string, told *time.Duration) []Finding {
	if told == nil {
		return nil
	}
	return []Finding{clock(check, *told)}
}

func clock(check string, ahead time.Duration) Finding {
	f := Good(check, "within %v of this machine's", skewTold)
	if ahead.Abs() < skewTold {
		return f
	}
	f.State, f.Next = Warn, "synchronize the clocks of both machines with NTP"
	if ahead.Abs() >= skewHarmful {
		f.State = Fail
	}
	side := "ahead of"
	if ahead < 0 {
		side = "behind"
	}
	f.Detail = fmt.Sprintf("%v %s this machine's", ahead.Abs().Round(time.Second), side)
	return f
}
