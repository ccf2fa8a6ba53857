package kafkastream

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/topsail-serving/topsail/internal/retry"
	"github.com/topsail-serving/topsail/serving"
)

// transaction produces messages and commits offsets, both or neither.
type transaction struct {
	*session
	member     string
	generation int32
	plan       map[place]commitment
	messages   []serving.StreamMessage
}

// markerPause is between two looks at whether the transaction before is over.
const markerPause = 500 * time.Microsecond

// run does it. With an error nothing is done, or the session has failed.
func (t *transaction) run(ctx context.Context) error {
	if len(t.messages) == 0 {
		return t.judge(t.commitAlone(ctx))
	}
	if _, _, err := t.client.ProducerID(ctx); err != nil { // Begin would not heed ctx
		t.fail()
		return t.judge(fmt.Errorf("begin a transaction: %w", err))
	}
	if err := t.client.BeginTransaction(); err != nil {
		t.fail()
		return t.judge(fmt.Errorf("begin a transaction: %w", err))
	}
	// First the offsets, which are tried until the transaction before is over. For who produces before that the broker
	// waits longer.
	if !t.implicit {
		if err := t.add(ctx); err != nil {
			return t.judge(t.abort(ctx, err))
		}
	}
	// One after the other: a broker that is asked for both at a time verifies the transaction for each, may refuse one because of
	// the other, and the client tries that again after a quarter of a second.
	if err := t.commitOffsets(ctx); err != nil {
		return t.judge(t.abort(ctx, err))
	}
	if err := produce(ctx, t.client, t.messages); err != nil {
		t.fail() // the client cannot tell what of it is in the transaction
		return t.judge(err)
	}
	return t.commitAll(ctx)
}

// commitAll ends the transaction.
func (t *transaction) commitAll(ctx context.Context) error {
	err := t.client.EndTransaction(ctx, kgo.TryCommit)
	switch {
	case err == nil:
		return nil
	case errors.Is(err, kerr.OperationNotAttempted), errors.Is(err, kerr.TransactionAbortable):
		return t.judge(t.abort(ctx, err))
	}
	t.fail()
	return t.judge(fmt.Errorf("end the transaction, which may be committed or not: %w", err))
}

// abort takes back the transaction because of an error, which it returns.
func (t *transaction) abort(ctx context.Context, why error) error {
	if err := t.client.EndTransaction(ctx, kgo.TryAbort); err != nil {
		t.fail()
	}
	return why
}

// judge says what an error means for the records.
func (t *transaction) judge(err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, kerr.ProducerFenced), errors.Is(err, kerr.InvalidProducerEpoch):
		t.fail()
		return fmt.Errorf("%w: another process is the member %q of %s", serving.ErrRecordsLost, t.group.Member, t.group.Name)
	case errors.Is(err, kerr.MessageTooLarge):
		t.limits.forget() // they are smaller than they were
	case errors.Is(err, kerr.OffsetMetadataTooLarge):
		t.limits.lessMetadata()
	}
	return err
}

// add has the offsets of the group be part of the transaction.
func (t *transaction) add(ctx context.Context) error {
	id, epoch, err := t.client.ProducerID(ctx)
	if err != nil {
		return fmt.Errorf("add offsets to the transaction: %w", err)
	}
	add := kmsg.NewPtrAddOffsetsToTxnRequest()
	add.TransactionalID, add.ProducerID, add.ProducerEpoch, add.Group = t.group.transactionalID(), id, epoch, t.group.Name
	for {
		answer, err := add.RequestWith(ctx, t.client)
		if err == nil {
			err = kerr.ErrorForCode(answer.ErrorCode)
		}
		if err == nil {
			return nil
		}
		if !errors.Is(err, kerr.ConcurrentTransactions) || ctx.Err() != nil {
			t.fail() // the client does not know that they may be
			return fmt.Errorf("add offsets to the transaction: %w", err)
		}
		retry.Sleep(ctx, markerPause)
	}
}

// commitOffsets has the offsets be committed with the transaction.
func (t *transaction) commitOffsets(ctx context.Context) error {
	id, epoch, err := t.client.ProducerID(ctx)
	if err != nil {
		return fmt.Errorf("commit offsets: %w", err)
	}
	commit := kmsg.NewPtrTxnOffsetCommitRequest()
	commit.TransactionalID, commit.Group, commit.ProducerID, commit.ProducerEpoch = t.group.transactionalID(), t.group.Name, id, epoch
	commit.Generation, commit.MemberID = t.generation, t.member
	for topic, partitions := range t.offsets() {
		of := kmsg.NewTxnOffsetCommitRequestTopic()
		of.Topic = topic
		for partition, c := range partitions {
			p := kmsg.NewTxnOffsetCommitRequestTopicPartition()
			p.Partition, p.Offset, p.Metadata = partition, c.offset, &c.metadata
			of.Partitions = append(of.Partitions, p)
		}
		commit.Topics = append(commit.Topics, of)
	}
	for {
		answer, err := commit.RequestWith(ctx, t.client)
		if err != nil {
			t.fail() // they may be in the transaction, which the client does not know and so does not abort
			return fmt.Errorf("commit offsets: %w", err)
		}
		some, err := refused(answer)
		if some && err != nil {
			t.fail() // the same
			return err
		}
		if !errors.Is(err, kerr.ConcurrentTransactions) || ctx.Err() != nil {
			return err
		}
		retry.Sleep(ctx, markerPause)
	}
}

// refused is why offsets were, and whether some were not.
func refused(answer *kmsg.TxnOffsetCommitResponse) (some bool, err error) {
	for _, topic := range answer.Topics {
		for _, p := range topic.Partitions {
			if why := kerr.ErrorForCode(p.ErrorCode); why == nil {
				some = true
			} else if err == nil {
				err = fmt.Errorf("commit the offset of %s/%d: %w", topic.Topic, p.Partition, why)
			}
		}
	}
	return some, err
}

// commitAlone commits the offsets by themselves: there is nothing to produce.
func (t *transaction) commitAlone(ctx context.Context) error {
	commit := kmsg.NewPtrOffsetCommitRequest()
	commit.Group, commit.Generation, commit.MemberID = t.group.Name, t.generation, t.member
	for topic, partitions := range t.offsets() {
		of := kmsg.NewOffsetCommitRequestTopic()
		of.Topic = topic
		for partition, c := range partitions {
			p := kmsg.NewOffsetCommitRequestTopicPartition()
			p.Partition, p.Offset, p.Metadata = partition, c.offset, &c.metadata
			of.Partitions = append(of.Partitions, p)
		}
		commit.Topics = append(commit.Topics, of)
	}
	answer, err := commit.RequestWith(ctx, t.client)
	if err != nil {
		t.fail() // it may be done
		return fmt.Errorf("commit offsets, which may be done or not: %w", err)
	}
	for _, topic := range answer.Topics {
		for _, p := range topic.Partitions {
			if err := kerr.ErrorForCode(p.ErrorCode); err != nil {
				return fmt.Errorf("commit the offset of %s/%d: %w", topic.Topic, p.Partition, err)
			}
		}
	}
	return nil
}

// offsets is the plan by topic and partition.
func (t *transaction) offsets() map[string]map[int32]commitment {
	all := map[string]map[int32]commitment{}
	for at, c := range t.plan {
		if all[at.topic] == nil {
			all[at.topic] = map[int32]commitment{}
		}
		all[at.topic][at.partition] = c
	}
	return all
}

// rebalancing says that members of the group come or go: it is seen soon whose the records are.
func rebalancing(err error) bool {
	for _, one := range []error{kerr.RebalanceInProgress, kerr.IllegalGeneration, kerr.UnknownMemberID, kerr.GroupIDNotFound} {
		if errors.Is(err, one) {
			return true
		}
	}
	return false
}
