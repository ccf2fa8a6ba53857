package kafkastream

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/topsail-serving/topsail/internal/retry"
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

func (g Group) transactionalID() string { return g.Name + "/" + g.Member }

// Consumer is a member of a consumer group. One goroutine polls while another one commits.
type Consumer struct {
	broker     Broker
	group      Group
	limits     limits
	conditions *conditions
	begun      bool // what a process of our name left open is ended; of the polling goroutine

	mu      sync.Mutex
	session *session // nil: there is none
	closed  bool

	asking sync.Mutex
	client *kgo.Client // of Lag; guarded by asking
	silent bool        // Lag asks nothing more; guarded by asking
}

var (
	errClosed   = errors.New("the consumer is closed")
	errNoAnswer = errors.New("kafka does not answer") // which is logged where it is noticed
	errNothing  = errors.New("there are no records to commit")
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

const (
	// pollSlice is how soon Poll notices, when nothing comes, that a partition stands still.
	pollSlice = time.Second
	// heartbeatMost is the longest time between two heartbeats.
	heartbeatMost = time.Second
	// beginPause is between two tries to take over the transactional id.
	beginPause = 200 * time.Millisecond
	// failPause is before the next try when a partition cannot be consumed.
	failPause = time.Second
)

// Poll returns the next records, at least one and at most most. While Kafka is unavailable
// it keeps trying and says so in the log; its error is ctx's, or that of a wrong use.
func (c *Consumer) Poll(ctx context.Context, most int) ([]serving.StreamRecord, error) {
	for {
		s, err := c.open(ctx)
		if err != nil {
			return nil, err
		}
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		if s == nil || c.begin(ctx, s) != nil {
			retry.Sleep(ctx, beginPause)
			continue
		}
		records, failed := s.poll(ctx, max(most, 1))
		switch {
		case len(records) > 0:
			return records, nil // even if ctx has ended: they are in flight
		case failed != nil:
			if errors.Is(failed, kerr.UnknownTopicID) {
				s.fail() // a topic was deleted and made again
			}
			retry.Sleep(ctx, failPause)
		}
	}
}

// open is the session, a new one where the last cannot go on; nil while Kafka does not answer.
func (c *Consumer) open(ctx context.Context) (*session, error) {
	s, err := c.current()
	if err != nil || s != nil && s.ended.Err() == nil {
		return s, err
	}
	c.drop(ctx)
	implicit, err := c.broker.implicit(ctx, c.conditions)
	switch {
	case errors.Is(err, errNoAnswer):
		return nil, nil
	case err != nil:
		return nil, err
	}
	if s, err = c.openSession(implicit); err != nil {
		return nil, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.session, c.begun = s, false
	return s, nil
}

// current is the session, if there is one.
func (c *Consumer) current() (*session, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return nil, errClosed
	}
	return c.session, nil
}

// begin ends a transaction that a process of our name left open, which its records may wait
// for.
func (c *Consumer) begin(ctx context.Context, s *session) error {
	if c.begun {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, ioTimeout)
	defer cancel()
	if _, _, err := s.client.ProducerID(ctx); err != nil {
		if ctx.Err() == nil {
			c.conditions.say(c.group.transactionalID(), "cannot take over the transactional id; retrying", err)
		}
		return err
	}
	c.conditions.over(c.group.transactionalID(), "took over the transactional id")
	c.begun = true
	c.lookForTopics(ctx, s)
	return nil
}

// lookForTopics says which topics do not exist: the client waits for them in silence.
func (c *Consumer) lookForTopics(ctx context.Context, s *session) {
	topics, err := kadm.NewClient(s.client).ListTopics(ctx, c.group.Streams...)
	if err != nil {
		return // that Kafka went away is said elsewhere
	}
	for _, name := range c.group.Streams {
		if err := topics[name].Err; errors.Is(err, kerr.UnknownTopicOrPartition) {
			c.broker.Log.Warn("a topic does not exist; it is consumed when it does, within a minute", "topic", name)
		}
	}
}

// leaveWithin bounds the wait for the answer to our leaving the group: Kafka hears it or
// finds it out.
const leaveWithin = 2 * time.Second

// drop ends the session. The next one ends what it left open.
func (c *Consumer) drop(ctx context.Context) {
	c.mu.Lock()
	s := c.session
	c.session = nil
	c.mu.Unlock()
	if s == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), leaveWithin)
	defer cancel()
	s.close(ctx)
}

// Close leaves the group; records in flight go to others. It takes seconds at most.
func (c *Consumer) Close() error {
	c.mu.Lock()
	c.closed = true
	c.mu.Unlock()
	c.silence()
	c.drop(context.Background())
	return nil
}
