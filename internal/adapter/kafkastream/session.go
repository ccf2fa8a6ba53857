package kafkastream

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/topsail-serving/topsail/serving"
)

// place is a partition of a topic.
type place struct {
	topic     string
	partition int32
}

func (p place) String() string { return fmt.Sprintf("%s/%d", p.topic, p.partition) }

// session is a client in a consumer group, from joining it until something cannot go on.
type session struct {
	client     *kgo.Client
	group      Group
	conditions *conditions
	limits     *limits
	implicit   bool               // see implicit
	cancel     context.CancelFunc // of all that the client waits for; then Close is all it can
	ended      context.Context    // ends when the session cannot go on
	end        context.CancelFunc

	mu         sync.Mutex
	partitions map[place]*partition
	stuck      map[place]*kgo.ErrDecompressTooLarge // at batches that the client does not read, and says so of once
}

// openSession makes a session. It dials when it is used.
func (c *Consumer) openSession(implicit bool) (*session, error) {
	opts, err := c.broker.options(c.conditions)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(context.Background())
	s := &session{
		group: c.group, conditions: c.conditions, limits: &c.limits, implicit: implicit, cancel: cancel,
		partitions: map[place]*partition{}, stuck: map[place]*kgo.ErrDecompressTooLarge{},
	}
	s.ended, s.end = context.WithCancel(context.Background())
	s.client, err = kgo.NewClient(append(opts,
		kgo.WithContext(ctx),
		kgo.MaxVersions(versions(implicit)),
		kgo.WithLogger(clientLog{c.broker.Log}),
		kgo.ConsumerGroup(c.group.Name),
		kgo.ConsumeTopics(c.group.Streams...),
		kgo.ConsumeStartOffset(kgo.NewOffset().AtStart()),
		kgo.DisableAutoCommit(),
		kgo.BlockRebalanceOnPoll(), // until what came is taken in
		kgo.Balancers(kgo.CooperativeStickyBalancer()),
		kgo.SessionTimeout(c.group.Takeover),
		kgo.RebalanceTimeout(c.group.Takeover),
		kgo.HeartbeatInterval(min(c.group.Takeover/10, heartbeatMost)), // how soon a rebalance is noticed
		kgo.OnPartitionsAssigned(func(context.Context, *kgo.Client, map[string][]int32) {
			c.conditions.over(theGroup, "in the consumer group again")
		}),
		kgo.OnOffsetsFetched(func(_ context.Context, _ *kgo.Client, fetched *kmsg.OffsetFetchResponse) error {
			s.assigned(fetched)
			return nil
		}),
		kgo.OnPartitionsRevoked(s.revoked),
		kgo.OnPartitionsLost(s.revoked),
		kgo.RetryTimeout(c.group.Takeover),

		kgo.TransactionalID(c.group.transactionalID()),
		kgo.TransactionTimeout(c.group.Takeover),
		kgo.ConcurrentTransactionsBackoff(markerPause),
		kgo.ProducerBatchMaxBytesFn(c.limits.batch),
		kgo.RecordDeliveryTimeout(c.group.Takeover),
	)...)
	if err != nil {
		cancel()
		return nil, fmt.Errorf("make a member of the consumer group %s: %w", c.group.Name, err)
	}
	return s, nil
}

// assigned begins with partitions where their committed offsets say.
func (s *session) assigned(fetched *kmsg.OffsetFetchResponse) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ended.Err() != nil {
		return
	}
	for _, group := range fetched.Groups {
		for _, t := range group.Topics {
			for _, p := range t.Partitions {
				metadata := ""
				if p.Metadata != nil {
					metadata = *p.Metadata
				}
				if p.ErrorCode == 0 {
					s.begin(place{t.Topic, p.Partition}, newPartition(p.Offset, metadata))
				}
			}
		}
	}
}

// begin begins with a partition anew.
func (s *session) begin(at place, p *partition) {
	s.forget(at)
	s.partitions[at] = p
}

// forget lets go of what is in flight of a partition.
func (s *session) forget(at place) {
	if p := s.partitions[at]; p != nil {
		close(p.lost)
		delete(s.partitions, at)
	}
	if s.stuck[at] != nil {
		delete(s.stuck, at)
		s.conditions.over(at.String(), "no longer at the batch that is not read")
	}
}

// revoked has partitions be others'.
func (s *session) revoked(_ context.Context, _ *kgo.Client, lost map[string][]int32) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for topic, partitions := range lost {
		for _, p := range partitions {
			s.forget(place{topic, p})
		}
	}
}

// fail ends the session: what is in flight is redelivered, or is committed where that is not known.
func (s *session) fail() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.end()
	for at := range s.partitions {
		s.forget(at)
	}
}

// close leaves the group.
func (s *session) close(ctx context.Context) {
	s.fail()
	defer s.cancel()
	if err := s.client.LeaveGroupContext(ctx); err != nil { // an unreachable broker drops the member by its timeout
		s.cancel() // Close would wait for a connection that is being made
	}
	s.client.CloseAllowingRebalance()
	s.client.AllowRebalance() // for Close polls what is left, behind which a goroutine of its own may wait forever
}

// poll returns what comes next, and what went wrong.
func (s *session) poll(ctx context.Context, most int) (records []serving.StreamRecord, failed error) {
	slice, cancel := context.WithTimeout(ctx, pollSlice)
	defer cancel()
	defer context.AfterFunc(s.ended, cancel)()
	fetches := s.client.PollRecords(slice, most)
	failed = s.complain(fetches)
	records = s.take(fetches.Records())
	s.client.AllowRebalance()
	return records, failed
}

// take takes in what came. What was done before it came is passed.
func (s *session) take(polled []*kgo.Record) []serving.StreamRecord {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ended.Err() != nil {
		return nil
	}
	records := make([]serving.StreamRecord, 0, len(polled))
	for _, r := range polled {
		at := place{r.Topic, r.Partition}
		p := s.partitions[at]
		if p == nil || r.Offset < p.read { // the broker lost the end of its log
			p = newPartition(-1, "")
			s.begin(at, p)
		}
		if p.take(r.Offset) {
			record := newRecord(r)
			record.Lost = p.lost
			records = append(records, record)
		}
	}
	return records
}

// complain says what goes wrong with partitions, and returns the last that went wrong. A partition that
// stands still at a batch that is not read is no reason to wait with others.
func (s *session) complain(fetches kgo.Fetches) (failed error) {
	fetches.EachError(func(topic string, partition int32, err error) {
		if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
			return // of Poll
		}
		if batch, ok := errors.AsType[*kgo.ErrDecompressTooLarge](err); ok {
			s.stick(batch)
			return
		}
		failed = err
		if _, ok := errors.AsType[*kgo.ErrGroupSession](err); ok {
			return // outage has said so, and it may be over by now
		}
		s.conditions.say(place{topic, partition}.String(), "cannot consume; retrying", err)
	})
	s.mu.Lock()
	defer s.mu.Unlock()
	for at, batch := range s.stuck {
		s.conditions.say(at.String(), "stands still", fmt.Errorf("the batch of records %d to %d unpacks to more than %d MiB, which is not read: "+
			"stop the stream's processes, and set the offset of the consumer group %s to %d",
			batch.Offset, batch.NextOffset-1, batchBytes>>20, s.group.Name, batch.NextOffset))
	}
	return failed
}

// stick remembers that a partition of this member stands still.
func (s *session) stick(batch *kgo.ErrDecompressTooLarge) {
	at := place{batch.Topic, batch.Partition}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ended.Err() == nil {
		s.stuck[at] = batch
	}
}

// commit commits some results, once. It says which of them have to wait.
func (s *session) commit(ctx context.Context, results []serving.StreamResult) (waiting []int, err error) {
	// From before it is seen whose the partitions are: where they move later, the broker sees it by the generation.
	member, generation := s.client.GroupMetadata()
	if generation < 0 {
		return nil, kerr.RebalanceInProgress
	}
	plan, waiting, err := s.plan(results)
	if err != nil || len(plan) == 0 {
		return waiting, err
	}
	t := transaction{session: s, member: member, generation: generation, plan: plan}
	for i, r := range results {
		if !slices.Contains(waiting, i) {
			t.messages = append(t.messages, r.Messages...)
		}
	}
	if err := t.run(ctx); err != nil {
		return nil, err
	}
	s.committed(plan)
	return waiting, nil
}

var errNotInFlight = errors.New("is not in flight: it was committed, or not polled")

// plan is what to commit of each partition.
func (s *session) plan(results []serving.StreamResult) (plan map[place]commitment, waiting []int, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	offsets, indexes := map[place][]int64{}, map[place]map[int64]int{}
	for i, r := range results {
		at, offset, err := parsePlace(r.Record)
		p := s.partitions[at]
		switch {
		case err != nil:
			return nil, nil, err
		case r.Record.IsLost() || p == nil:
			return nil, nil, serving.ErrRecordsLost
		}
		if _, is := p.inFlight[offset]; !is {
			return nil, nil, fmt.Errorf("%s %w", r.Record.Position(), errNotInFlight)
		}
		if indexes[at] == nil {
			indexes[at] = map[int64]int{}
		}
		offsets[at] = append(offsets[at], offset)
		indexes[at][offset] = i
	}
	plan = map[place]commitment{}
	for at, records := range offsets {
		c := s.partitions[at].plan(records, s.limits.metadata())
		if len(c.records) > 0 {
			plan[at] = c
		}
		for _, offset := range c.records {
			delete(indexes[at], offset)
		}
		for _, i := range indexes[at] {
			waiting = append(waiting, i)
		}
	}
	return plan, waiting, nil
}

// committed notes what is committed.
func (s *session) committed(plan map[place]commitment) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, c := range plan {
		c.done(c.records)
	}
}
