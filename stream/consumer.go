package stream

import (
	"context"

	"github.com/topsail-serving/topsail/serving"
)

// Consumer is a member of a consumer group. One goroutine uses it.
type Consumer interface {
	// Poll returns the next records, at least one and at most most, as soon as there
	// are any; those of one partition are in its order. All of them must be committed
	// before the next Poll. A record that no member of the group committed comes
	// again, to some member.
	Poll(ctx context.Context, most int) ([]serving.StreamRecord, error)
	// Commit produces the messages and marks the polled records as done, both or
	// neither as far as the broker can: with Kafka in one transaction, with Redis in
	// one script. Where records of the Poll belong to another member by now it does
	// neither and returns serving.ErrRecordsLost; the caller forgets them.
	//
	// An error that is a TooLarge names a message that the broker does not take. Nothing
	// was done, and the caller may commit again with a smaller one in its place. After
	// every other error the records are forgotten, and the next call is Poll: those that
	// were not committed are redelivered.
	Commit(ctx context.Context, results []serving.StreamMessage) error
	// Close leaves the group; records that were polled and not committed go to others.
	Close() error
}

// Lagging is a Consumer that says how it stands with what it consumes. It may be asked by another
// goroutine than that which polls and commits, until it is closed.
type Lagging interface {
	// Lag is how many records of its streams the group has not committed. Its error says why
	// that cannot be known, or why the group cannot be consumed at present. It takes seconds at most.
	Lag(ctx context.Context) (records int64, err error)
}

// TooLarge is an error of Commit: one message is larger than the broker takes.
type TooLarge interface {
	error
	TooLarge() (message int) // its index among those that were to be produced
}
