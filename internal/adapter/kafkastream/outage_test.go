package kafkastream

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/topsail-serving/topsail/serving"
)

// working is a member of a group with ten records in flight, at a broker that is about to fail.
type working struct {
	*testing.T
	*fake
	in, out string
	c       *Consumer
	records []serving.StreamRecord
}

func atWork(t *testing.T, test func(w *working)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		f := newFake(t)
		w := &working{T: t, fake: f, in: fresh(t, f.broker, 1, nil), out: fresh(t, f.broker, 1, nil)}
		w.c = join(t, f.broker, Group{Name: w.in, Member: "a", Streams: []string{w.in}, Takeover: takeover})
		write(t, f.broker, numbered(w.in, 10)...)
		w.records = poll(t, w.c, 10)
		test(w)
	})
}

// took is how long a call takes.
func took(call func()) time.Duration {
	began := time.Now()
	call()
	return time.Since(began)
}

func (w *working) commit() error {
	return try(w.Context(), w.c, w.records, numbered(w.out, len(w.records)))
}

// pollFor polls for so long, and wants nothing to come.
func (w *working) pollFor(d time.Duration) {
	w.Helper()
	ctx, cancel := context.WithTimeout(w.Context(), d)
	defer cancel()
	var err error
	if got := took(func() { _, err = w.c.Poll(ctx, 10) }); got != d || !errors.Is(err, context.DeadlineExceeded) {
		w.Errorf("Poll ends after %v with error %v, want %v and that its context ended", got, err, d)
	}
}

// goesOn has the broker work again: soon each record has its result, once.
func (w *working) goesOn() {
	w.Helper()
	w.set(works)
	if got := took(w.finish); got > takeover+2*time.Second {
		w.Errorf("all have results after %v, want %v at most", got, takeover+2*time.Second)
	}
	got := values(results(w.T, w.broker, w.out, 10))
	if want := strings.Split("0123456789", ""); !slices.Equal(got, want) {
		w.Errorf("results of %v, want %v", got, want)
	}
	if lag, err := w.c.Lag(w.Context()); lag != 0 || err != nil {
		w.Errorf("a lag of %d and error %v, want 0 and none", lag, err)
	}
}

// finish commits what is in flight, and polls what was lost, until all records have results.
func (w *working) finish() {
	for end := time.Now().Add(patience); len(read(w.T, w.broker, w.out)) < 10 && time.Now().Before(end); {
		w.records = slices.DeleteFunc(w.records, func(r serving.StreamRecord) bool { return r.IsLost() })
		if len(w.records) == 0 {
			ctx, cancel := context.WithTimeout(w.Context(), time.Second)
			w.records, _ = w.c.Poll(ctx, 10)
			cancel()
			continue
		}
		if err := w.commit(); err != nil {
			w.Log(err)
		}
	}
}

// TestOutage: calls end at their deadlines, the log says what is wrong, and when it is over; then the member goes on.
func TestOutage(t *testing.T) {
	for name, broker := range map[string]struct {
		answers time.Duration
		after   time.Duration // Commit fails
		lag     time.Duration // and Lag at most: no deadline ends the making of a connection
	}{
		"frozen":            {freezes, takeover, 2 * ioTimeout},
		"closes":            {closes, 0, 0},
		"answers after 6 s": {6 * time.Second, takeover, 2 * ioTimeout},
	} {
		t.Run(name, func(t *testing.T) {
			atWork(t, func(w *working) {
				w.set(broker.answers)
				var err error
				if got := took(func() { err = w.commit() }); got != broker.after || err == nil {
					w.Errorf("Commit ends after %v with error %v, want %v and one", got, err, broker.after)
				}
				w.pollFor(100 * time.Millisecond)
				addr := w.broker.Addrs[0]
				if got := took(func() { _, err = w.c.Lag(w.Context()) }); got > broker.lag || err == nil || !strings.Contains(err.Error(), addr) {
					w.Errorf("Lag ends after %v with error %v, want %v at most, and one of %s", got, err, broker.lag, addr)
				}
				w.pollFor(5 * time.Minute)
				const fails, most = "cannot get into a broker of kafka; retrying", 12 // once in 30 s
				if got := strings.Count(w.said.String(), fails); got < most/2 || got > most {
					w.Errorf("the log says %q %d times in five minutes, want %d to %d", fails, got, most/2, most)
				}
				w.goesOn()
				const again = "got into a broker of kafka again"
				if got := strings.Count(w.said.String(), again); got != 1 {
					w.Errorf("the log says %q %d times, want 1", again, got)
				}
			})
		})
	}
}

// TestSomeOffsetsAreRefused: those that are not would be committed with the next transaction, and without their results. So
// the session ends, which aborts them, and all records come again.
func TestSomeOffsetsAreRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake(t)
		in, out := fresh(t, f.broker, 2, nil), fresh(t, f.broker, 1, nil)
		c := join(t, f.broker, Group{Name: in, Member: "a", Streams: []string{in}, Takeover: takeover})
		messages := numbered(in, 10) // of both partitions
		for i := range messages {
			messages[i].Key = messages[i].Value
		}
		write(t, f.broker, messages...)
		var records []serving.StreamRecord
		for len(records) < 10 {
			records = append(records, poll(t, c, 10)...)
		}
		f.cluster.ControlKey(kmsg.TxnOffsetCommit.Int16(), func(req kmsg.Request) (kmsg.Response, error, bool) {
			answer := req.ResponseKind().(*kmsg.TxnOffsetCommitResponse)
			for _, topic := range req.(*kmsg.TxnOffsetCommitRequest).Topics {
				to := kmsg.NewTxnOffsetCommitResponseTopic()
				to.Topic = topic.Topic
				for i, partition := range topic.Partitions {
					of := kmsg.NewTxnOffsetCommitResponseTopicPartition()
					of.Partition = partition.Partition
					if i > 0 {
						of.ErrorCode = kerr.OffsetMetadataTooLarge.Code
					}
					to.Partitions = append(to.Partitions, of)
				}
				answer.Topics = append(answer.Topics, to)
			}
			return answer, nil, true
		})
		if err := try(t.Context(), c, records, numbered(out, 10)); !errors.Is(err, kerr.OffsetMetadataTooLarge) || !records[0].IsLost() {
			t.Fatalf("error %v, and the records are lost: %v", err, records[0].IsLost())
		}
		if room := c.limits.metadata(); room != mostMetadata/2 {
			t.Errorf("there is room for %d bytes", room)
		}
		for done := 0; done < 10; {
			again := poll(t, c, 10)
			commit(t, c, again, numbered(out, len(again)))
			done += len(again)
		}
		if got := read(t, f.broker, out); len(got) != 10 {
			t.Errorf("%d results", len(got))
		}
	})
}

// TestLateAnswers: those that come in time only take time. Of a Commit that they come too late for it is not known
// whether it is done; its records have one result all the same.
func TestLateAnswers(t *testing.T) {
	for _, late := range []time.Duration{50 * time.Millisecond, 300 * time.Millisecond, time.Second, 2 * time.Second, 4 * time.Second} {
		t.Run(late.String(), func(t *testing.T) {
			atWork(t, func(w *working) {
				w.set(late)
				var err error
				got := took(func() { err = w.commit() })
				if slow := 10*late >= takeover; got > takeover+late || !slow && (got > 10*late || err != nil) {
					w.Errorf("Commit ends after %v with error %v", got, err)
				}
				w.goesOn()
			})
		})
	}
}

// TestCloseWithoutAnswers: Close takes its time and no more, whatever connections are being made.
func TestCloseWithoutAnswers(t *testing.T) {
	for name, test := range map[string]struct {
		fails []time.Duration // how late it is, one after the other
		since time.Duration
		want  time.Duration
	}{
		"frozen":                   {[]time.Duration{freezes}, 0, leaveWithin},
		"frozen when it came back": {[]time.Duration{closes, freezes}, 0, leaveWithin},
		"frozen since minutes":     {[]time.Duration{freezes}, 3 * time.Minute, leaveWithin},
		"gone":                     {[]time.Duration{closes}, 0, 0},
	} {
		t.Run(name, func(t *testing.T) {
			atWork(t, func(w *working) {
				for _, late := range test.fails {
					w.set(late)
				}
				w.pollFor(test.since)
				if got := took(func() { w.c.Close() }); got != test.want {
					w.Errorf("Close takes %v, want %v", got, test.want)
				}
			})
		})
	}
}
