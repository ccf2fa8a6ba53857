package kafkastream

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/topsail-serving/topsail/serving"
)

// session is one that passes batches which unpack to more than batchBytes. The client says
// once that there is such a batch, and then its partition stands still. Here the batch is
// handed out as one record, and the transaction with its result goes on behind it.
type session struct {
	*kgo.GroupTransactSession
	cancel context.CancelFunc           // of all that the client waits for; then Close is all it can
	unread []*kgo.ErrDecompressTooLarge // found, and not yet passed
	handed int                          // the first of them, which wait for End
	met    *atomic.Int64                // batches at which the client stopped
	said   int64                        // of them, those it said so of
	owed   time.Time                    // since when it has not said so of one
	stuck  bool                         // the client does not go on in some partition
}

// mayBeOwed is how long other records may be in front of what the client has to say.
const mayBeOwed = time.Minute

// forgot says that the client stopped a partition and will not say so: that goes when the
// client throws away what it has fetched, as whenever partitions move. Idle: the client had
// a while to say something.
func (s *session) forgot(idle bool) bool {
	switch {
	case s.met.Load() <= s.said:
		s.owed = time.Time{}
	case s.owed.IsZero():
		s.owed = time.Now()
	default:
		return idle || time.Since(s.owed) > mayBeOwed
	}
	return false
}

// stopLog finds in the client's log where it stops, which nothing else tells for sure.
type stopLog struct {
	clientLog
	met *atomic.Int64
}

func (l stopLog) Level() kgo.LogLevel { return max(l.clientLog.Level(), kgo.LogLevelError) }

func (l stopLog) Log(level kgo.LogLevel, message string, pairs ...any) {
	if strings.HasPrefix(message, "batch decompresses larger than") {
		l.met.Add(1)
	}
	l.clientLog.Log(level, message, pairs...)
}

// hand hands out batches that cannot be read.
func (s *session) hand(most int) []serving.StreamRecord {
	s.handed = min(most, len(s.unread))
	records := make([]serving.StreamRecord, s.handed)
	for i, batch := range s.unread[:s.handed] {
		records[i] = newUnread(batch)
	}
	return records
}

func newUnread(batch *kgo.ErrDecompressTooLarge) serving.StreamRecord {
	first, last := batch.Offset, batch.NextOffset-1
	return serving.StreamRecord{
		Stream: batch.Topic, Place: fmt.Sprintf("%d/%d-%d", batch.Partition, first, last), At: time.Now(),
		Unread: fmt.Sprintf("the batch of records %d to %d unpacks to more than %d MiB, which is not read: let its producer send smaller batches",
			first, last, batchBytes>>20),
	}
}

// End ends the transaction, and passes what was handed out if it is committed; else that is
// handed out again. The client itself commits only offsets of records that it returned.
func (s *session) End(ctx context.Context, try kgo.TransactionEndTry) (committed bool, err error) {
	handed := s.unread[:s.handed]
	s.handed = 0
	committed, err = s.GroupTransactSession.End(kgo.PreTxnCommitFnContext(ctx, func(req *kmsg.TxnOffsetCommitRequest) error {
		for _, batch := range handed {
			addOffset(req, batch)
		}
		return nil
	}), try)
	if committed {
		s.pass(handed)
		s.unread = s.unread[len(handed):]
	}
	return committed, err
}

// addOffset commits the offset behind a batch, too.
func addOffset(req *kmsg.TxnOffsetCommitRequest, batch *kgo.ErrDecompressTooLarge) {
	i := slices.IndexFunc(req.Topics, func(t kmsg.TxnOffsetCommitRequestTopic) bool { return t.Topic == batch.Topic })
	if i < 0 {
		i = len(req.Topics)
		req.Topics = append(req.Topics, kmsg.NewTxnOffsetCommitRequestTopic())
		req.Topics[i].Topic = batch.Topic
	}
	p := kmsg.NewTxnOffsetCommitRequestTopicPartition()
	p.Partition, p.Offset, p.LeaderEpoch, p.Metadata = batch.Partition, batch.NextOffset, batch.Epoch, &req.MemberID
	req.Topics[i].Partitions = append(req.Topics[i].Partitions, p)
}

// pass has the client go on behind batches. It cannot in a partition of which it has
// returned no record and found no offset committed.
func (s *session) pass(batches []*kgo.ErrDecompressTooLarge) {
	for _, batch := range batches {
		behind := kgo.EpochOffset{Epoch: batch.Epoch, Offset: batch.NextOffset}
		s.Client().SetOffsets(map[string]map[int32]kgo.EpochOffset{batch.Topic: {batch.Partition: behind}})
		if s.Client().CommittedOffsets()[batch.Topic][batch.Partition] != behind {
			s.stuck = true
		}
	}
}
