package doctor

import (
	"fmt"
	"time"

	"github.com/topsail-serving/topsail/internal/check"
)

// How far the clocks of two machines may be apart: reports of demand go by the second,
// and the scheduler reads those of the last ones.
const (
	skewTold    = 2 * time.Second
	skewHarmful = 10 * time.Second
)

// Clock judges how far the clock of a server is ahead of ours; of one that does not
// tell, there is nothing to say.
func Clock(name string, told *time.Duration) []check.Finding {
	if told == nil {
		return nil
	}
	return []check.Finding{clock(name, *told)}
}

func clock(name string, ahead time.Duration) check.Finding {
	f := check.Good(name, "within %v of this machine's", skewTold)
	if ahead.Abs() < skewTold {
		return f
	}
	f.State, f.Next = check.Warn, "synchronize the clocks of both machines with NTP"
	if ahead.Abs() >= skewHarmful {
		f.State = check.Failed
	}
	side := "ahead of"
	if ahead < 0 {
		side = "behind"
	}
	f.Detail = fmt.Sprintf("%v %s this machine's", ahead.Abs().Round(time.Second), side)
	return f
}
