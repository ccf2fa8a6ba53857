package stream

import (
	"context"

	"github.com/topsail-serving/topsail/serving"
)

// Consumer is a member of a consumer group. One goroutine polls while another one commits.
type Consumer interface {
	// Poll returns the next records, at least one and at most most, as soon as there
	// are any; those of one partition are in its order. They are in flight until they are
	// committed or lost, and none is redelivered before. Others may be polled meanwhile. A record that
	// no member of the group committed is redelivered, to some member.
	Poll(ctx context.Context, most int) ([]serving.StreamRecord, error)
	// Commit marks records in flight as done and produces their messages in the order of the
	// results, all or nothing as far as the broker can: with Kafka in one transaction, with Redis in
	// one script. Records before them may be committed later: only those that never are come again.
	// It returns the indexes of results that have to wait, about which it did nothing,
	// because the broker takes no more at once. They may be committed later.
	//
	// With an error it did nothing about all records that are not lost: they are in flight, and may be committed
	// again. serving.ErrRecordsLost says that some are lost, to another member. The commit of those
	// that are lost after another error may be done; what is not is redelivered. An
	// error that is a TooLarge names a result of which the broker does not take a message.
	Commit(ctx context.Context, results []serving.StreamResult) (waiting []int, err error)
	// Close leaves the group, after the last Poll and Commit; records in flight go to others.
	Close() error
}

// Lagging is a Consumer that says how it stands with what it consumes. It may be asked by another
// goroutine than those which poll and commit, until it is closed.
type Lagging interface {
	// Lag is how many records of its streams the group has not committed. Its error says why
	// that cannot be known, or why the group cannot be consumed at present. It takes seconds at most.
	Lag(ctx context.Context) (records int64, err error)
}

// TooLarge is an error of Commit: a message of one result is larger than the broker takes.
type TooLarge interface {
	error
	TooLarge() (result int) // its index
}
