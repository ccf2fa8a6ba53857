package kafkastream

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/topsail-serving/topsail/serving"
)

// Group says which group to join, with which credentials, and what it consumes. Name, Member and
// Streams are required.
type Group struct {
	Name    string
	Member  string   // of this process alone; it keeps it when it starts again
	Streams []string // topics
	// Takeover is how long a member may be silent before others take its records, and
	// how long a Commit may take; 10 s when 0. Brokers allow 6 s or more unless their
	// group.min.session.timeout.ms says otherwise.
	Takeover time.Duration
}

const defaultTakeover = 10 * time.Second

func (g Group) check() error {
	switch {
	case g.Name == "" || g.Member == "":
		return errors.New("a consumer group needs a name, and its member one")
	case strings.Contains(g.Member, "/"):
		return fmt.Errorf("the name of a member must be without slashes, unlike %q", g.Member)
	case len(g.Streams) == 0 || slices.Contains(g.Streams, ""):
		return errors.New("a consumer group needs topics to consume")
	case g.Takeover < 0:
		return fmt.Errorf("a member cannot be silent for %v", g.Takeover)
	}
	return nil
}

// Consumer is a member of a consumer group. One goroutine uses it.
type Consumer struct {
	broker     Broker
	group      Group
	limits     limits
	conditions *conditions

	session *session    // nil: there is none, or it cannot go on
	begun   bool        // what a process of our name left open is ended
	moved   atomic.Bool // the group was shared out anew since the last poll of the session
	taken   atomic.Bool // partitions were taken from us since then
	polled  int         // records that wait for Commit
	closed  bool

	asking sync.Mutex
	client *kgo.Client // of Lag; guarded by asking
	silent bool        // Lag asks nothing more; guarded by asking
}

var (
	errClosed      = errors.New("the consumer is closed")
	errUncommitted = errors.New("the records of the last Poll wait for Commit")
	errNotPolled   = errors.New("there are no records to commit: Poll comes first")
)

// Join makes a member of a group. It dials when it is first polled, and keeps trying. A
// group that is new begins where its topics begin.
func Join(broker Broker, group Group) (*Consumer, error) {
	if err := errors.Join(broker.check(), group.check()); err != nil {
		return nil, err
	}
	group.Takeover = cmp.Or(group.Takeover, defaultTakeover)
	return &Consumer{broker: broker, group: group, conditions: newConditions(broker.Log)}, nil
}

// Poll returns the next records, at least one and at most most. While Kafka is away it
// keeps trying and says so in the log; its error is ctx's, or that of a wrong use.
func (c *Consumer) Poll(ctx context.Context, most int) ([]serving.StreamRecord, error) {
	switch {
	case c.closed:
		return nil, errClosed
	case c.polled > 0:
		return nil, errUncommitted
	}
	for ctx.Err() == nil {
		if c.session != nil && c.session.stuck {
			c.drop(ctx) // the next one begins where it ought to
		}
		if err := c.open(); err != nil {
			return nil, err
		}
		if err := c.begin(ctx); err != nil {
			pause(ctx, 200*time.Millisecond)
			continue
		}
		records, failed := c.fetch(ctx, max(most, 1))
		if c.moved.Swap(false) {
			c.rewind(ctx) // what came may be others' by now
			continue
		}
		if len(records) > 0 {
			c.polled = len(records)
			return records, nil // even if ctx has ended: they count as polled
		}
		if failed != nil {
			c.mend(ctx, failed)
		}
	}
	return nil, context.Cause(ctx)
}

// fetch returns what comes next, and what went wrong. Batches that cannot be read come by
// themselves.
func (c *Consumer) fetch(ctx context.Context, most int) ([]serving.StreamRecord, error) {
	if len(c.session.unread) > 0 {
		return c.session.hand(most), nil
	}
	slice, cancel := context.WithTimeout(ctx, pollSlice)
	defer cancel()
	fetches := c.session.PollRecords(slice, most)
	failed := c.complain(fetches)
	records := newRecords(fetches.Records())
	if c.session.forgot(len(records) == 0 && ctx.Err() == nil) {
		c.session.stuck = true
		c.broker.Log.Info("a partition stands still at a batch that is not read; rejoining the group", "group", c.group.Name)
	}
	return records, failed
}

// pollSlice is how soon Poll notices, when nothing comes, that partitions moved.
const pollSlice = time.Second

func newRecords(polled []*kgo.Record) []serving.StreamRecord {
	records := make([]serving.StreamRecord, len(polled))
	for i, r := range polled {
		records[i] = newRecord(r)
	}
	return records
}

// open begins a session if there is none.
func (c *Consumer) open() error {
	if c.session != nil {
		return nil
	}
	opts, err := c.broker.options(c.conditions)
	if err != nil {
		return err
	}
	moved := func(_ context.Context, _ *kgo.Client, lost map[string][]int32) {
		c.moved.Store(true)
		if len(lost) > 0 {
			c.taken.Store(true)
		}
	}
	ctx, cancel := context.WithCancel(context.Background())
	met := new(atomic.Int64)
	joined, err := kgo.NewGroupTransactSession(append(opts,
		kgo.WithContext(ctx),
		kgo.WithLogger(stopLog{clientLog{c.broker.Log}, met}),
		kgo.ConsumerGroup(c.group.Name),
		kgo.ConsumeTopics(c.group.Streams...),
		kgo.ConsumeStartOffset(kgo.NewOffset().AtStart()),
		kgo.Balancers(kgo.CooperativeStickyBalancer()),
		kgo.SessionTimeout(c.group.Takeover),
		kgo.RebalanceTimeout(c.group.Takeover),
		kgo.HeartbeatInterval(min(c.group.Takeover/10, time.Second)), // how soon a rebalance is noticed
		kgo.OnPartitionsAssigned(func(context.Context, *kgo.Client, map[string][]int32) {
			c.conditions.over(theGroup, "in the consumer group again")
		}),
		kgo.OnPartitionsRevoked(moved),
		kgo.OnPartitionsLost(moved),
		kgo.RetryTimeout(c.group.Takeover),

		kgo.TransactionalID(c.transactionalID()),
		kgo.TransactionTimeout(c.group.Takeover),
		kgo.ConcurrentTransactionsBackoff(markerPause),
		kgo.ProducerBatchMaxBytesFn(c.limits.batch),
		kgo.RecordDeliveryTimeout(c.group.Takeover),
	)...)
	if err != nil {
		cancel()
		return fmt.Errorf("make a member of the consumer group %s: %w", c.group.Name, err)
	}
	c.session = &session{GroupTransactSession: joined, cancel: cancel, met: met}
	c.moved.Store(false)
	c.taken.Store(false)
	c.begun = false
	return nil
}

// begin ends a transaction that a process of our name left open, which its records may wait
// for.
func (c *Consumer) begin(ctx context.Context) error {
	if c.begun {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, ioTimeout)
	defer cancel()
	if _, _, err := c.session.Client().ProducerID(ctx); err != nil {
		if ctx.Err() == nil {
			c.conditions.say(c.transactionalID(), "cannot take over the transactional id; retrying", err)
		}
		return err
	}
	c.conditions.over(c.transactionalID(), "took over the transactional id")
	c.begun = true
	c.lookForTopics(ctx)
	return nil
}

func (c *Consumer) transactionalID() string { return c.group.Name + "/" + c.group.Member }

// lookForTopics says which topics do not exist: the client waits for them in silence.
func (c *Consumer) lookForTopics(ctx context.Context) {
	topics, err := kadm.NewClient(c.session.Client()).ListTopics(ctx, c.group.Streams...)
	if err != nil {
		return // that Kafka went away is said elsewhere
	}
	for _, name := range c.group.Streams {
		if err := topics[name].Err; errors.Is(err, kerr.UnknownTopicOrPartition) {
			c.broker.Log.Warn("a topic does not exist; it is consumed when it does, within a minute", "topic", name)
		}
	}
}

// complain says what goes wrong with partitions, and returns the last of it. Batches that
// cannot be read are only remembered: who gets them says so.
func (c *Consumer) complain(fetches kgo.Fetches) (failed error) {
	fetches.EachError(func(topic string, partition int32, err error) {
		if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
			return // of Poll
		}
		if batch, ok := errors.AsType[*kgo.ErrDecompressTooLarge](err); ok {
			c.session.said++
			c.session.unread = append(c.session.unread, batch)
			return
		}
		failed = err
		c.conditions.say(fmt.Sprintf("%s/%d", topic, partition), "cannot consume; retrying", err)
	})
	return failed
}

// mend waits before the next try. A session whose topic was deleted and made again
// cannot go on.
func (c *Consumer) mend(ctx context.Context, failed error) {
	if errors.Is(failed, kerr.UnknownTopicID) {
		c.drop(ctx)
	}
	pause(ctx, time.Second)
}

// rewind goes back to what is committed. It also takes back that a rebalance has
// happened, so that it does not cost the next transaction. Batches that cannot be read may
// be others' when partitions were taken: only a new session is redelivered those that are ours.
func (c *Consumer) rewind(ctx context.Context) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), c.group.Takeover) // the end of a Poll must not cost the session
	defer cancel()
	if _, err := c.session.End(ctx, kgo.TryAbort); err != nil || c.taken.Swap(false) && len(c.session.unread) > 0 {
		c.drop(ctx)
	}
}

// leaveWithin bounds the wait for the answer to our leaving the group: Kafka hears it or
// finds it out.
const leaveWithin = 2 * time.Second

// drop ends a session that cannot go on. The next one ends what it left open.
func (c *Consumer) drop(ctx context.Context) {
	if c.session == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), leaveWithin)
	defer cancel()
	defer c.session.cancel()
	if err := c.session.Client().LeaveGroupContext(ctx); err != nil { // a broker that is away finds it out
		c.session.cancel() // Close would wait for a connection that is being made
	}
	c.session.Close()
	c.session = nil
}

// Close leaves the group; records that were polled and not committed go to others. It
// takes seconds at most.
func (c *Consumer) Close() error {
	c.closed = true
	c.silence()
	c.drop(context.Background())
	return nil
}

func pause(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}
