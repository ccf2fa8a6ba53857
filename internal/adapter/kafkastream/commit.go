package kafkastream

import (
	"context"
	"errors"
	"time"

	"github.com/topsail-serving/topsail/internal/retry"
	"github.com/topsail-serving/topsail/serving"
)

// Commit produces the messages of results and marks their records as done, in one transaction: it commits
// the offset up to which all is done, with metadata that says what is done beyond it. Those wait that the
// metadata has no room for.
//
// While the group rebalances it tries again, for as long as the group's Takeover.
func (c *Consumer) Commit(ctx context.Context, results []serving.StreamResult) (waiting []int, err error) {
	s, err := c.current()
	switch {
	case err != nil:
		return nil, err
	case len(results) == 0:
		return nil, errNothing
	case s == nil:
		return nil, serving.ErrRecordsLost
	}
	ctx, cancel := context.WithTimeout(ctx, c.group.Takeover)
	defer cancel()
	for i, r := range results {
		err := c.limits.check(ctx, s.client, r.Messages)
		if large, ok := errors.AsType[*TooLargeError](err); ok {
			large.Message = i
		}
		if err != nil {
			return nil, err
		}
	}
	for {
		waiting, err = s.commit(ctx, results)
		if !rebalancing(err) || ctx.Err() != nil {
			return waiting, err
		}
		retry.Sleep(ctx, rebalancePause)
	}
}

// rebalancePause is between two looks at whether a rebalance is over.
const rebalancePause = 20 * time.Millisecond
