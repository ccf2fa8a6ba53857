package kafkastream

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/topsail-serving/topsail/serving"
)

// Commit produces the results and commits the polled records, in one transaction.
//
// With a TooLargeError nothing was done, and the records wait for another Commit. After
// every other error they are forgotten, and those that were not committed are redelivered:
// serving.ErrRecordsLost is the one where that is known, and to be expected.
func (c *Consumer) Commit(ctx context.Context, results []serving.StreamMessage) error {
	switch {
	case c.closed:
		return errClosed
	case c.polled == 0:
		return errNotPolled
	}
	ctx, cancel := context.WithTimeout(ctx, c.group.Takeover)
	defer cancel()
	err := c.limits.check(ctx, c.session.Client(), results)
	if _, ok := errors.AsType[*TooLargeError](err); ok {
		return err
	}
	c.polled = 0
	if err == nil {
		err = c.transact(ctx, results)
	}
	return c.end(ctx, err)
}

// transact begins a transaction with the results in it.
func (c *Consumer) transact(ctx context.Context, results []serving.StreamMessage) error {
	client := c.session.Client()
	if _, _, err := client.ProducerID(ctx); err != nil { // Begin would not heed ctx
		return fmt.Errorf("begin a transaction: %w", err)
	}
	if len(results) == 0 {
		if err := c.awaitMarkers(ctx); err != nil {
			return err
		}
	}
	if err := c.session.Begin(); err != nil {
		return fmt.Errorf("begin a transaction: %w", err)
	}
	return produce(ctx, client, results)
}

// awaitMarkers waits until the transaction before is over everywhere. To produce is to
// wait for that too; to commit offsets alone would be refused.
func (c *Consumer) awaitMarkers(ctx context.Context) error {
	admin, id := kadm.NewClient(c.session.Client()), c.transactionalID()
	for {
		described, err := admin.DescribeTransactions(ctx, id)
		if err != nil {
			return fmt.Errorf("ask for the transaction before: %w", err)
		}
		switch described[id].State {
		case "Ongoing", "PrepareCommit", "PrepareAbort":
			pause(ctx, markerPause)
		default:
			return nil
		}
	}
}

// markerPause is between two looks at whether a transaction is over.
const markerPause = 5 * time.Millisecond

// end ends the transaction, with the offsets in it if nothing failed.
func (c *Consumer) end(ctx context.Context, failed error) error {
	committed, err := c.session.End(ctx, kgo.TransactionEndTry(failed == nil))
	if err != nil || fenced(failed) || errors.Is(failed, kerr.MessageTooLarge) {
		c.drop(ctx)
	}
	switch {
	case fenced(failed) || fenced(err):
		return fmt.Errorf("%w: another process is the member %q of %s", serving.ErrRecordsLost, c.group.Member, c.group.Name)
	case errors.Is(failed, kerr.MessageTooLarge):
		c.limits.forget() // they are smaller than they were
		return failed
	case failed != nil:
		return failed
	case err != nil:
		return fmt.Errorf("end the transaction, which may be committed or not: %w", err)
	case !committed:
		return serving.ErrRecordsLost
	}
	return nil
}

// fenced says that a transaction was ended by another one of the same id.
func fenced(err error) bool {
	return errors.Is(err, kerr.ProducerFenced) || errors.Is(err, kerr.InvalidProducerEpoch)
}
