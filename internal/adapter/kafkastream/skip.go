package kafkastream

import (
	"fmt"
	"strings"
	"sync/atomic"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/topsail-serving/topsail/serving"
)

// stops is where the client stopped at batches that unpack to more than batchBytes. It says so
// once, and then the partition stands still. The batch is handed out as one record, and the client goes on behind it.
type stops struct {
	met  *atomic.Int64 // batches at which the client stopped
	said int64         // of them, those it said so of
	owed time.Time     // since when it has not said so of one
}

// mayBeOwed is how long other records may be in front of what the client has to say.
const mayBeOwed = time.Minute

// forgotten says that the client stopped a partition and will not say so: that goes when the
// client throws away what it has fetched, as whenever partitions move. Idle: the client had
// a while to say something.
func (s *stops) forgotten(idle bool) bool {
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

// pass remembers a batch that cannot be read, and has the client go on behind it. It cannot in a partition of which it has
// returned no record and found no offset committed: that goes on in another session, when the batch is committed.
func (s *session) pass(batch *kgo.ErrDecompressTooLarge) {
	at, behind := placeOf(batch), kgo.EpochOffset{Epoch: batch.Epoch, Offset: batch.NextOffset}
	s.client.SetOffsets(map[string]map[int32]kgo.EpochOffset{at.topic: {at.partition: behind}})
	passed := s.client.CommittedOffsets()[at.topic][at.partition] == behind
	s.mu.Lock()
	defer s.mu.Unlock()
	s.unread = append(s.unread, batch)
	if !passed {
		s.blocked[at] = batch.Offset
	}
}

func placeOf(batch *kgo.ErrDecompressTooLarge) place { return place{batch.Topic, batch.Partition} }

// hand hands out batches that cannot be read.
func (s *session) hand(most int) (records []serving.StreamRecord) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for len(s.unread) > 0 && len(records) < most {
		batch := s.unread[0]
		s.unread = s.unread[1:]
		p := s.partitions[placeOf(batch)]
		if p != nil && batch.Offset >= p.read && p.take(batch.Offset, batch.NextOffset) {
			record := newUnread(batch)
			record.Lost = p.lost
			records = append(records, record)
		}
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
