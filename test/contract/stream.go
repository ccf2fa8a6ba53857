package contract

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/topsail-serving/topsail/internal/retry"
	"github.com/topsail-serving/topsail/serving"
	"github.com/topsail-serving/topsail/test/require"
	"github.com/topsail-serving/topsail/test/wait"
)

// StreamConsumer is the seam of consuming streams; package stream says what it promises.
type StreamConsumer interface {
	Poll(ctx context.Context, most int) ([]serving.StreamRecord, error)
	Commit(ctx context.Context, results []serving.StreamResult) (waiting []int, err error)
	Close() error
	Lag(ctx context.Context) (int64, error)
}

// StreamBroker is what the suite needs of a broker: streams that are empty, and a group
// that nobody is in.
type StreamBroker struct {
	In       []string      // streams that the group consumes; a key is always in the same one
	Out      []string      // two streams for results
	Ordered  bool          // results of a key stay in order whatever members do
	Takeover time.Duration // after which others have the records of a member that is silent
	// Silence has a member stand still that has records in flight; nil: others that join have some of
	// them anyway.
	Silence func(member StreamConsumer)
	Churn   int // records that are written while members come and go; 0: 10,000
	Largest int // bytes of a value that is as large as results may be, give or take some

	Join func(name string, wire *Wire) StreamConsumer // a member whose connections are made by wire
	// JoinFor makes a member that may be silent for so long; nil: those of Join serve.
	JoinFor func(name string, takeover time.Duration) StreamConsumer
	Write   func(messages []serving.StreamMessage)
	Read    func(stream string) []serving.StreamRecord // all that is committed, one partition after the other
	Restart func()                                     // kills the broker and starts it again on its data; for a broker of one test
	Library string                                     // what stands in the stacks of the goroutines of its client
}

// Stream runs the suite. open makes a broker, which is of the test alone if private is set.
func Stream(t *testing.T, open func(t *testing.T, private bool) StreamBroker) {
	runStream(t, open, plainly)
}

// StreamInBubbles runs it in virtual time, with a broker in memory for each test.
func StreamInBubbles(t *testing.T, open func(t *testing.T, private bool) StreamBroker) {
	runStream(t, open, synctest.Test)
}

func runStream(t *testing.T, open func(t *testing.T, private bool) StreamBroker, in runner) {
	run := func(t *testing.T, private bool, test func(s *streams)) {
		in(t, func(t *testing.T) { test(&streams{T: t, StreamBroker: open(t, private)}) })
	}
	// By itself, for it counts goroutines; the others go on beside each other.
	t.Run("nothing is left after Close", func(t *testing.T) { run(t, false, (*streams).nothingLeft) })
	tests := []struct {
		name string
		run  func(s *streams)
	}{
		{"in order", (*streams).inOrder},
		{"as it was written", (*streams).asWritten},
		{"no more than asked for", (*streams).most},
		{"used wrongly", (*streams).wrongly},
		{"an ended context", (*streams).endedContext},
		{"results of several streams, and none", (*streams).severalResults},
		{"large records", (*streams).large},
		{"too large a result", (*streams).tooLarge},
		{"uncommitted at Close", (*streams).uncommittedAtClose},
		{"a member that leaves", (*streams).leaves},
		{"uncommitted at a kill", (*streams).uncommittedAtKill},
		{"records that went to another member", (*streams).lost},
		{"a member again under its name", (*streams).sameName},
		{"members come and go", (*streams).comeAndGo},
		{"a window", (*streams).window},
		{"results beyond the first that is not there", (*streams).beyond},
		{"lag", (*streams).lag},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			run(t, false, test.run)
		})
	}
	for writes := range 9 {
		t.Run(fmt.Sprintf("a commit cut after %d writes", writes), func(t *testing.T) {
			t.Parallel()
			run(t, false, func(s *streams) { s.cutCommit(writes) })
		})
	}
	t.Run("a broker that is killed", func(t *testing.T) {
		t.Parallel()
		run(t, true, (*streams).restart)
	})
}

// streams is one test of the suite.
type streams struct {
	*testing.T
	StreamBroker
	written int // records so far; the value of each is its number
}

const streamKeys = 16

// streamPatience bounds every wait of the suite: a group of Kafka on a busy machine takes
// its time to find out who died.
const streamPatience = time.Minute

// write writes n numbered records.
func (s *streams) write(n int) {
	messages := make([]serving.StreamMessage, n)
	for i := range messages {
		key := s.written % streamKeys
		messages[i] = serving.StreamMessage{
			Stream: s.In[key%len(s.In)], Key: []byte(numbered("key-", key)), Value: []byte(strconv.Itoa(s.written)),
		}
		s.written++
	}
	s.Write(messages)
}

// join makes a member that is closed at the end.
func (s *streams) join(name string) (StreamConsumer, *Wire) {
	wire := &Wire{}
	member := s.Join(name, wire)
	s.Cleanup(func() { s.close(member) })
	return member, wire
}

// joinFor makes a member that may be silent for longer than the suite waits.
func (s *streams) joinFor(name string) StreamConsumer {
	if s.JoinFor == nil {
		member, _ := s.join(name)
		return member
	}
	member := s.JoinFor(name, 2*streamPatience)
	s.Cleanup(func() { s.close(member) })
	return member
}

func (s *streams) close(member StreamConsumer) {
	s.Helper()
	if err := member.Close(); err != nil {
		s.Error("close:", err)
	}
}

// poll wants at least one record.
func (s *streams) poll(member StreamConsumer, most int) []serving.StreamRecord {
	s.Helper()
	ctx, cancel := context.WithTimeout(s.Context(), streamPatience)
	defer cancel()
	records, err := member.Poll(ctx, most)
	if err != nil || len(records) == 0 || len(records) > most {
		s.Fatalf("poll of %d: %d records, error %v", most, len(records), err)
	}
	return records
}

// pollAll polls and commits nothing until it has n records in one batch.
func (s *streams) pollAll(name string, n int) (StreamConsumer, *Wire, []serving.StreamRecord) {
	s.Helper()
	for end := time.Now().Add(streamPatience); time.Now().Before(end); {
		member, wire := s.join(name)
		if records := s.poll(member, n); len(records) == n {
			return member, wire, records
		}
		s.close(member) // some came before others
	}
	s.Fatalf("%d records do not come at once", n)
	return nil, nil, nil
}

// echo is the results: each record as it came.
func (s *streams) echo(records []serving.StreamRecord) []serving.StreamMessage {
	results := make([]serving.StreamMessage, len(records))
	for i, r := range records {
		results[i] = serving.StreamMessage{Stream: s.Out[0], Key: r.Key, Value: r.Value, Headers: r.Headers}
	}
	return results
}

// paired are the results of records: one message each, none at all, or all of them with the last one.
func paired(records []serving.StreamRecord, messages []serving.StreamMessage) []serving.StreamResult {
	results := make([]serving.StreamResult, len(records))
	for i := range records {
		results[i].Record = &records[i]
		if len(messages) == len(records) {
			results[i].Messages = messages[i : i+1]
		}
	}
	if n := len(results); n > 0 && len(messages) != n {
		results[n-1].Messages = messages
	}
	return results
}

// commit commits records with messages, all of them.
func (s *streams) commit(ctx context.Context, member StreamConsumer, records []serving.StreamRecord, messages []serving.StreamMessage) error {
	waiting, err := member.Commit(ctx, paired(records, messages))
	if err == nil && len(waiting) > 0 {
		s.Errorf("%d of %d records have to wait", len(waiting), len(records))
	}
	return err
}

// work has a member work until there are n results in the first of the streams for them; make
// makes those of a batch.
func (s *streams) work(member StreamConsumer, most, n int, make func([]serving.StreamRecord) []serving.StreamMessage) {
	s.Helper()
	for end := time.Now().Add(streamPatience); len(s.Read(s.Out[0])) < n && time.Now().Before(end); {
		ctx, cancel := context.WithTimeout(s.Context(), time.Second)
		records, err := member.Poll(ctx, most)
		cancel()
		if len(records) > most {
			s.Fatalf("poll of %d: %d records", most, len(records))
		}
		if err != nil {
			s.Log(err)
			continue
		}
		s.persist(s.Context(), member, records, make(records))
	}
	s.read(s.Out[0], n)
}

// persist commits records until they are committed, or lost.
func (s *streams) persist(ctx context.Context, member StreamConsumer, records []serving.StreamRecord, messages []serving.StreamMessage) (done int) {
	results := paired(records, messages)
	for ctx.Err() == nil {
		results = slices.DeleteFunc(results, func(r serving.StreamResult) bool { return r.Record.IsLost() })
		if len(results) == 0 {
			return 0
		}
		waiting, err := member.Commit(ctx, results)
		if err == nil && len(waiting) == 0 {
			return len(results)
		}
		s.Log("commit:", err, "waiting", len(waiting))
		if err == nil {
			s.Errorf("%d of %d records have to wait", len(waiting), len(results))
		}
		retry.Sleep(ctx, 10*time.Millisecond)
	}
	return 0
}

// step polls a batch and commits its echo. What is lost comes again.
func (s *streams) step(ctx context.Context, member StreamConsumer, most int) (done int) {
	records, err := member.Poll(ctx, most)
	if err != nil {
		if ctx.Err() == nil {
			s.Errorf("poll: %v", err)
		}
		return 0
	}
	return s.persist(ctx, member, records, s.echo(records))
}

// finish has a member do what is left, until there is a result of each record.
func (s *streams) finish(member StreamConsumer) {
	s.Helper()
	ctx, cancel := context.WithCancel(s.Context())
	var working sync.WaitGroup
	working.Go(func() {
		for ctx.Err() == nil {
			s.step(ctx, member, 500)
		}
	})
	defer working.Wait()
	defer cancel()
	s.awaitResults()
}

// awaitResults waits for a result of each record, and wants no second one.
func (s *streams) awaitResults() {
	s.Helper()
	wait.Until(s, "a result of each record", func() bool { return s.results() >= s.written },
		func() string { return fmt.Sprintf("%d of %d records have results", s.results(), s.written) })
}

// read waits until there are n records in a stream; there must not be more.
func (s *streams) read(stream string, n int) (records []serving.StreamRecord) {
	s.Helper()
	wait.Until(s, fmt.Sprintf("%d records in %s", n, stream), func() bool { records = s.Read(stream); return len(records) >= n },
		func() string { return fmt.Sprintf("there are %d", len(records)) })
	if len(records) != n {
		s.Fatalf("%d of %d records in %s", len(records), n, stream)
	}
	return records
}

// results is of how many records there are results; there must not be two of one.
func (s *streams) results() int {
	s.Helper()
	seen := map[string]string{} // where
	last := map[string]int{}    // of each key
	for _, r := range s.Read(s.Out[0]) {
		value, key := string(r.Value), string(r.Key)
		if before, ok := seen[value]; ok {
			s.Fatalf("record %s has two results, at %s and %s", value, before, r.Place)
		}
		seen[value] = r.Place
		number, err := strconv.Atoi(value)
		require.NoError(s, err)
		if before, ok := last[key]; s.Ordered && ok && number < before {
			s.Fatalf("the result of %d comes after that of %d, both of %s", number, before, key)
		}
		last[key] = number
	}
	return len(seen)
}

func (s *streams) inOrder() {
	s.Ordered = true // of a single member always
	s.write(1000)
	member, _ := s.join("a")
	s.work(member, 70, s.written, func(records []serving.StreamRecord) []serving.StreamMessage {
		last := map[string]int{}
		for _, r := range records {
			number, _ := strconv.Atoi(string(r.Value))
			if before, ok := last[string(r.Key)]; ok && number <= before {
				s.Fatalf("%d comes after %d", number, before)
			}
			last[string(r.Key)] = number
		}
		return s.echo(records)
	})
	s.results()
}

func (s *streams) asWritten() {
	began := time.Now()
	headers := []serving.StreamHeader{{Name: "trace", Value: []byte{0, 1, 0xff}}, {Name: "trace", Value: []byte("again")}, {Name: "key", Value: []byte("k")}, {Name: "value", Value: []byte("v")}, {Name: "empty", Value: []byte{}}}
	messages := []serving.StreamMessage{
		{Key: []byte("k"), Value: []byte("v")},
		{Key: []byte{}, Value: []byte("an empty key")},
		{Value: []byte("no key")},
		{Key: []byte("empty value"), Value: []byte{}},
		{Key: []byte{0, 0xff, '\r', '\n'}, Value: []byte{0, 0xfe, '\r', '\n', 0}},
		{Key: []byte("headers"), Value: []byte("h"), Headers: headers},
		{Value: []byte("headers and no key"), Headers: headers},
	}
	for i := range messages {
		messages[i].Stream = s.In[0]
	}
	s.Write(messages)
	member, _ := s.join("a")
	var records []serving.StreamRecord
	s.work(member, 100, len(messages), func(polled []serving.StreamRecord) []serving.StreamMessage {
		for _, r := range polled {
			if !slices.ContainsFunc(records, func(before serving.StreamRecord) bool { return before.Place == r.Place }) {
				records = append(records, r)
			}
		}
		return s.echo(polled)
	})
	s.same("record", s.In[0], records, messages, began)
	s.same("result", s.Out[0], s.read(s.Out[0], len(messages)), messages, began)
}

// same wants the records to be the messages, in the order of those of one partition.
func (s *streams) same(what, stream string, records []serving.StreamRecord, messages []serving.StreamMessage, began time.Time) {
	s.Helper()
	if len(records) != len(messages) {
		s.Fatalf("%d %ss of %d messages", len(records), what, len(messages))
	}
	for _, want := range messages {
		i := slices.IndexFunc(records, func(r serving.StreamRecord) bool { return bytes.Equal(r.Value, want.Value) })
		if i < 0 {
			s.Fatalf("there is no %s %q", what, want.Value)
		}
		got := records[i]
		equal := func(a, b serving.StreamHeader) bool { return a.Name == b.Name && bytes.Equal(a.Value, b.Value) }
		if !bytes.Equal(got.Key, want.Key) || !slices.EqualFunc(got.Headers, want.Headers, equal) || got.Stream != stream {
			s.Errorf("%s %+v of message %+v", what, got, want)
		}
		if got.Place == "" || got.At.Before(began.Add(-time.Minute)) || got.At.After(time.Now().Add(time.Minute)) {
			s.Errorf("%s at %q, %v", what, got.Place, got.At)
		}
	}
}

func (s *streams) most() {
	s.write(60)
	member, _ := s.join("a")
	s.work(member, 7, s.written, s.echo)
	s.results()
}

func (s *streams) wrongly() {
	member, _ := s.join("a")
	if _, err := member.Commit(s.Context(), nil); err == nil {
		s.Error("a Commit without records")
	}
	s.write(3)
	records := s.poll(member, 1)
	if s.persist(s.Context(), member, records, nil) == 0 {
		s.Fatal("the record is lost")
	}
	if _, err := member.Commit(s.Context(), paired(records, nil)); err == nil {
		s.Error("a second Commit")
	}
	s.close(member)
	if _, err := member.Poll(s.Context(), 1); err == nil {
		s.Error("a Poll after Close")
	}
	if _, err := member.Commit(s.Context(), paired(records, nil)); err == nil {
		s.Error("a Commit after Close")
	}
	s.close(member)
}

func (s *streams) endedContext() {
	member, _ := s.join("a")
	for _, wait := range []time.Duration{0, time.Millisecond, 50 * time.Millisecond, 500 * time.Millisecond} {
		ctx, cancel := context.WithTimeout(s.Context(), wait)
		began := time.Now()
		records, err := member.Poll(ctx, 10)
		cancel()
		if !errors.Is(err, context.DeadlineExceeded) || len(records) > 0 {
			s.Fatalf("%d records and error %v after %v", len(records), err, wait)
		}
		if late := time.Since(began) - wait; late > 5*time.Second {
			s.Errorf("Poll ends %v after its context", late)
		}
	}
	s.write(50)
	s.finish(member)
}

func (s *streams) severalResults() {
	s.write(20)
	member, _ := s.join("a")
	var first, second int
	for done, batch := 0, 0; done < s.written; batch++ {
		records := s.poll(member, 6)
		results := s.echo(records)
		if batch > 0 {
			results = nil
		}
		for i := range results {
			if first++; i%2 == 1 {
				results[i].Stream = s.Out[1]
				first, second = first-1, second+1
			}
		}
		require.NoError(s, s.commit(s.Context(), member, records, results))
		done += len(records)
	}
	s.read(s.Out[0], first)
	s.read(s.Out[1], second)
	ctx, cancel := context.WithTimeout(s.Context(), s.Takeover+s.Takeover/2)
	defer cancel()
	if records, err := member.Poll(ctx, 10); !errors.Is(err, context.DeadlineExceeded) {
		s.Errorf("%d records come after all were committed, error %v", len(records), err)
	}
}

func (s *streams) large() {
	value := bytes.Repeat([]byte("0123456789abcdef"), s.Largest*9/10/16)
	var messages []serving.StreamMessage
	for i := range 6 {
		messages = append(messages, serving.StreamMessage{Stream: s.In[0], Value: append([]byte{byte('a' + i)}, value...)})
	}
	s.Write(messages)
	member, _ := s.join("a")
	s.work(member, len(messages), len(messages), s.echo)
	s.same("result", s.Out[0], s.read(s.Out[0], len(messages)), messages, time.Now())
}

func (s *streams) tooLarge() {
	s.write(3)
	member, _ := s.join("a")
	s.work(member, s.written, s.written, func(records []serving.StreamRecord) []serving.StreamMessage {
		results := s.echo(records)
		last := len(results) - 1
		results[last].Value = make([]byte, s.Largest+s.Largest/10)
		_, err := member.Commit(s.Context(), paired(records, results))
		var large interface {
			error
			TooLarge() (result int)
		}
		if !errors.As(err, &large) || large.TooLarge() != last {
			s.Fatalf("a result of %d bytes: error %v", len(results[last].Value), err)
		}
		results[last].Value = records[last].Value // which work commits in its place
		return results
	})
	s.results()
}

func (s *streams) nothingLeft() {
	s.write(200)
	before := s.goroutines()
	members := map[string]StreamConsumer{}
	for _, name := range []string{"a", "b"} {
		members[name] = s.Join(name, &Wire{})
	}
	s.finish(members["a"])
	s.write(10)
	s.poll(members["a"], 1)
	for _, member := range members {
		began := time.Now()
		s.close(member)
		if took := time.Since(began); took > 5*time.Second {
			s.Errorf("Close takes %v", took)
		}
	}
	poll, end := time.NewTicker(5*time.Millisecond), time.After(streamPatience)
	defer poll.Stop()
	for s.goroutines() > before {
		select {
		case <-poll.C:
		case <-end:
			s.Fatalf("%d goroutines of the client before, %d after", before, s.goroutines())
		}
	}
}

// goroutines are those of the broker's client.
func (s *streams) goroutines() int {
	stacks := make([]byte, 8<<20)
	stacks = stacks[:runtime.Stack(stacks, true)]
	n := 0
	for stack := range strings.SplitSeq(string(stacks), "\n\n") {
		if strings.Contains(stack, s.Library) {
			n++
		}
	}
	return n
}
