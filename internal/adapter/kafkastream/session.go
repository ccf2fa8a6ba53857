package kafkastream

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"

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

// session is a client in a consumer group, from joining it until something cannot go on.
type session struct {
	client     *kgo.Client
	group      Group
	conditions *conditions
	limits     *limits
	cancel     context.CancelFunc // of all that the client waits for; then Close is all it can
	ended      context.Context    // ends when the session cannot go on
	end        context.CancelFunc
	stops      stops // of the polling goroutine

	mu         sync.Mutex
	partitions map[place]*partition
	room       int                          // for metadata
	unread     []*kgo.ErrDecompressTooLarge // that are still to be handed out
	blocked    map[place]int64              // batches behind which the client cannot go, by their offset
}

// openSession makes a session. It dials when it is used.
func (c *Consumer) openSession() (*session, error) {
	opts, err := c.broker.options(c.conditions)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(context.Background())
	s := &session{
		group: c.group, conditions: c.conditions, limits: &c.limits, cancel: cancel,
		stops: stops{met: new(atomic.Int64)}, partitions: map[place]*partition{}, room: mostMetadata, blocked: map[place]int64{},
	}
	s.ended, s.end = context.WithCancel(context.Background())
	s.client, err = kgo.NewClient(append(opts,
		kgo.WithContext(ctx),
		kgo.WithLogger(stopLog{clientLog{c.broker.Log}, s.stops.met}),
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
	delete(s.blocked, at)
	s.unread = slices.DeleteFunc(s.unread, func(b *kgo.ErrDecompressTooLarge) bool { return placeOf(b) == at })
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

// poll returns what comes next, and what went wrong. Batches that cannot be read come by
// themselves.
func (s *session) poll(ctx context.Context, most int) (records []serving.StreamRecord, failed error) {
	if records = s.hand(most); len(records) > 0 {
		return records, nil
	}
	slice, cancel := context.WithTimeout(ctx, pollSlice)
	defer cancel()
	defer context.AfterFunc(s.ended, cancel)()
	fetches := s.client.PollRecords(slice, most)
	failed = s.complain(fetches)
	records = s.take(fetches.Records())
	s.client.AllowRebalance()
	if s.stops.forgotten(len(records) == 0 && ctx.Err() == nil) {
		s.fail()
		return nil, errStands
	}
	return records, failed
}

var errStands = errors.New("a partition stands still at a batch that is not read; rejoining the group")

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
		if p.take(r.Offset, r.Offset+1) {
			record := newRecord(r)
			record.Lost = p.lost
			records = append(records, record)
		}
	}
	return records
}

// complain says what goes wrong with partitions, and returns the last that went wrong. Batches that
// cannot be read are only remembered: who gets them says so.
func (s *session) complain(fetches kgo.Fetches) (failed error) {
	fetches.EachError(func(topic string, partition int32, err error) {
		if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
			return // of Poll
		}
		if batch, ok := errors.AsType[*kgo.ErrDecompressTooLarge](err); ok {
			s.stops.said++
			s.pass(batch)
			return
		}
		failed = err
		if _, ok := errors.AsType[*kgo.ErrGroupSession](err); ok {
			return // outage has said so, and it may be over by now
		}
		s.conditions.say(fmt.Sprintf("%s/%d", topic, partition), "cannot consume; retrying", err)
	})
	return failed
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
		c := s.partitions[at].plan(records, s.room)
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
	stands := false
	s.mu.Lock()
	for at, c := range plan {
		c.done(c.records)
		batch, is := s.blocked[at]
		stands = stands || is && slices.Contains(c.records, batch)
	}
	s.mu.Unlock()
	if stands {
		s.fail() // the next one begins behind the batch
	}
}

// lessRoom has less metadata be committed from now on.
func (s *session) lessRoom() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.room /= 2
}
