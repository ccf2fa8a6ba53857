package records

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/topsail-serving/topsail/internal/obs"
	"github.com/topsail-serving/topsail/serving"
	"github.com/topsail-serving/topsail/stream"
	"github.com/topsail-serving/topsail/test/journal"
	"github.com/topsail-serving/topsail/test/require"
)

func TestEveryRecordHasItsResult(t *testing.T) {
	bubble(t, func(t *testing.T) {
		const n = 3000
		broker := newMemory("in")
		for i := range n {
			record := jsonRecord(strconv.Itoa(i), float64(i))
			if i%2 == 1 {
				record = protobufRecord(strconv.Itoa(i), float64(i))
			}
			broker.write(record)
		}
		s := newScorer(func(ctx context.Context, q *serving.Query) (serving.Prediction, error) {
			time.Sleep(time.Duration(rand.IntN(20)) * time.Millisecond) // they overtake each other
			return double(ctx, q)
		})
		j, _, _ := run(t, broker, s, func(c *Config) { c.Batch, c.Concurrency, c.Order = 100, 40, stream.OrderPartition })
		settled(time.Minute)

		out := broker.read("out")
		if len(out) != n {
			t.Fatalf("%d results of %d records", len(out), n)
		}
		for i, r := range out {
			id := strconv.Itoa(i)
			format := stream.JSON
			if i%2 == 1 {
				format = stream.Protobuf
			}
			got, err := ParseResponse(r.Value, format)
			if err != nil || got.UUID != id || string(got.Output) != strconv.Itoa(2*i) || got.Model != "m" || got.Version != "1" || got.QueryID == 0 {
				t.Fatalf("result %d is %+v, %v", i, got, err)
			}
			if string(r.Key) != "key of "+id || r.Header(stream.HeaderContentType) != format.ContentType() {
				t.Fatalf("result %d is %+v", i, r)
			}
		}
		if s.most > 40 || s.most < 20 {
			t.Errorf("%d were asked at a time", s.most)
		}
		status := j.Status()
		if status.Tally != (Tally{Records: n, Results: n}) || status.LastPlace != "in 0/2999" || status.LastCommit == nil || status.InFlight != 0 || status.Condition != "" {
			t.Errorf("status %+v", status)
		}
		if len(broker.read("dead")) > 0 {
			t.Errorf("dead letters %+v", broker.read("dead"))
		}
	})
}

// TestRejectedRecords has every kind of bad record in one batch, with good ones between them.
func TestRejectedRecords(t *testing.T) {
	bubble(t, func(t *testing.T) {
		named := func(m serving.StreamMessage, name, value string) serving.StreamMessage {
			m.Headers = append(m.Headers, serving.StreamHeader{Name: name, Value: []byte(value)})
			return m
		}
		value := func(text string) serving.StreamMessage {
			return serving.StreamMessage{Stream: "in", Key: []byte("k"), Value: []byte(text)}
		}
		bad := []struct {
			record serving.StreamMessage
			reason stream.Reason
			text   string
		}{
			{value("garbage"), stream.Unreadable, "the message is no protobuf message: "},
			{value(`{"uuid": "1", "input": [1]`), stream.Unreadable, "the message is no json message: unexpected end"},
			{value(`{"uuid": "1"}`), stream.Unreadable, `needs a member "input"`},
			{value(`{"uuid": "` + strings.Repeat("x", 300) + `", "input": [1]}`), stream.Unreadable, "uuid has 300 bytes"},
			{named(value(`{}`), "content-type", "text/plain"), stream.Unreadable, `content-type "text/plain" is not known`},
			{value(`{"input": [1]}`), stream.NoID, "has no uuid"},
			{value(""), stream.NoID, "has no uuid"}, // an empty protobuf message
			{value(`{"uuid": "1", "input": "text"}`), WrongInput, "must be an array of numbers"},
			{value(`{"uuid": "2", "input": [1, "2"]}`), WrongInput, `not "2"`},
			{value(string((&Request{UUID: "3", Data: []byte("123")}).AppendProtobuf(nil))), WrongInput, "data has 3 bytes"},
			{value(`{"uuid": "4", "input": [1, 2, 3]}`), WrongInput, "the model takes 1"},
			{value(`{"uuid": "5", "input": [1], "app": "other"}`), UnknownApp, `"other", which is none of the job's`},
			{named(jsonRecord("6", 1), HeaderApp, "gone"), UnknownApp, `there is no app "missing"`},
			{value(`{"uuid": "7", "input": [` + strings.Repeat("1,", 5000) + `1]}`), stream.RecordTooLarge, "and the job takes 5000"},
			{jsonRecord("good 0", 1), stream.DuplicateID, `uuid "good 0", at in 0/0`},
		}
		broker := newMemory("in")
		for i, one := range bad {
			broker.write(jsonRecord(fmt.Sprintf("good %d", i), float64(i)), one.record)
		}
		s := newScorer(func(ctx context.Context, q *serving.Query) (serving.Prediction, error) {
			if len(q.Input.Data) > 8 {
				return serving.Prediction{}, &serving.QueryError{Cause: "Input has 3 elements, and the model takes 1"}
			}
			return double(ctx, q)
		})
		registry := obs.NewRegistry()
		j, _, _ := run(t, broker, s, func(c *Config) {
			c.Order = stream.OrderPartition
			c.MaxRecord, c.Apps, c.Metrics = 5000, map[string]string{"gone": "missing"}, NewMetrics(registry)
		})
		settled(time.Minute)

		if got := results(t, broker, "out"); len(got) != len(bad) {
			t.Errorf("%d good results of %d: %+v", len(got), len(bad), got)
		}
		dead := broker.read("dead")
		if len(dead) != len(bad) {
			t.Fatalf("%d dead letters of %d", len(dead), len(bad))
		}
		byReason := map[stream.Reason]int{}
		for i, one := range bad {
			d := dead[i]
			if why := d.Header(stream.HeaderReason); d.Header(stream.HeaderKind) != string(one.reason) || !strings.Contains(why, one.text) {
				t.Errorf("%.50q is dead for %s: %s; want %s: …%s…", one.record.Value, d.Header(stream.HeaderKind), why, one.reason, one.text)
			}
			if string(d.Key) != string(one.record.Key) || string(d.Value) != string(one.record.Value) {
				t.Errorf("the dead letter of %.50q is %.50q", one.record.Value, d.Value)
			}
			if d.Header(stream.HeaderJob) != "job" || d.Header(stream.HeaderStream) != "in" || d.Header(stream.HeaderPlace) != fmt.Sprintf("0/%d", 2*i+1) {
				t.Errorf("headers %s", d.Headers)
			}
			byReason[one.reason]++
		}
		status := j.Status()
		if status.DeadLetters != uint64(len(bad)) || status.Results != uint64(len(bad)) || !strings.HasPrefix(status.LastError, "dead letter: an id twice") || status.LastFailed == nil {
			t.Errorf("status %s", asJSON(status))
		}
		metrics := gathered(t, registry)
		for reason, n := range byReason {
			if got := metrics[fmt.Sprintf(`topsail_stream_dead_letters_total{reason="%v",stream="job"}`, reason)]; got != float64(n) {
				t.Errorf("%v dead letters for %v of %d", got, reason, n)
			}
		}
		if got := metrics[`topsail_stream_records_total{result="dead_letter",stream="job"}`]; got != float64(len(bad)) {
			t.Errorf("%v records that are dead letters", got)
		}
	})
}

// TestRecordsNameTheirApp by their message or a header.
func TestRecordsNameTheirApp(t *testing.T) {
	bubble(t, func(t *testing.T) {
		broker := newMemory("in")
		record := serving.StreamMessage{Stream: "in", Value: []byte(`{"uuid": "by header", "input": "four", "uid": 7, "context": "c"}`)}
		record.Headers = []serving.StreamHeader{{Name: HeaderApp, Value: []byte("words")}}
		both := record
		both.Value = []byte(`{"uuid": "by both", "input": "sixsix", "app": "numbers", "uid": 7, "context": "c"}`)
		broker.write(
			serving.StreamMessage{Stream: "in", Value: []byte(`{"uuid": "by message", "input": [4], "app": "numbers"}`)}, record, both,
			serving.StreamMessage{Stream: "in", Value: []byte(`{"uuid": "by nothing", "input": [4]}`)},
		)
		s := newScorer(double)
		run(t, broker, s, func(c *Config) { c.App, c.Apps = "", map[string]string{"numbers": "double", "words": "length"} })
		settled(time.Second)
		got := results(t, broker, "out")
		if len(got) != 3 || string(got["by message"].Output) != "8" || string(got["by header"].Output) != "4" || string(got["by both"].Output) != "6" {
			t.Errorf("results %+v", got)
		}
		for _, q := range s.asked() {
			if q.App == "length" && (q.User != "7" || q.Context != "c") {
				t.Errorf("query %+v", q)
			}
		}
		if dead := broker.read("dead"); len(dead) != 1 || !strings.Contains(dead[0].Header(stream.HeaderReason), "names no app") {
			t.Errorf("dead letters %+v", dead)
		}
	})
}

// TestIDs: an id that came before elsewhere is a mistake, and one that came before at
// the same place is a record that comes again, whose result the broker may have lost too.
func TestIDs(t *testing.T) {
	bubble(t, func(t *testing.T) {
		broker := newMemory("in")
		broker.write(jsonRecord("a", 1), jsonRecord("b", 2))
		j, _, _ := run(t, broker, newScorer(double), func(c *Config) { c.Recent, c.Order = 3, stream.OrderPartition })
		settled(time.Second)
		broker.mu.Lock()
		delete(broker.done, position{"in", 0}) // the broker forgot that it was committed
		broker.first["in"] = 0
		broker.mu.Unlock()
		broker.write(jsonRecord("b", 3), jsonRecord("c", 4))
		settled(time.Minute)
		var ids []string
		for _, r := range broker.read("out") {
			response, err := ParseResponse(r.Value, stream.JSON)
			require.NoError(t, err)
			ids = append(ids, response.UUID)
		}
		if !slices.Equal(ids, []string{"a", "b", "a", "c"}) {
			t.Errorf("results of %v", ids)
		}
		if dead := broker.read("dead"); len(dead) != 1 || dead[0].Header(stream.HeaderPlace) != "0/2" {
			t.Errorf("dead letters %+v", dead)
		}
		if got := j.Status().Tally; got != (Tally{Records: 5, Results: 4, DeadLetters: 1, Redelivered: 1}) {
			t.Errorf("tally %+v", got)
		}
		// The memory is of the last three: a is forgotten once d and e have come.
		broker.write(jsonRecord("d", 5), jsonRecord("e", 6))
		settled(time.Second)
		broker.write(jsonRecord("a", 7), jsonRecord("e", 8))
		settled(time.Second)
		if out, dead := broker.read("out"), broker.read("dead"); len(out) != 7 || len(dead) != 2 || dead[1].Header(stream.HeaderPlace) != "0/7" {
			t.Errorf("%d results, dead letters %+v", len(out), dead)
		}
	})
}

// TestADeadLetterMayBeSentAgain, mended, with its id.
func TestADeadLetterMayBeSentAgain(t *testing.T) {
	bubble(t, func(t *testing.T) {
		broker := newMemory("in")
		record := jsonRecord("a", 1)
		record.Value = []byte(`{"uuid": "a", "input": "one"}`)
		broker.write(record)
		run(t, broker, newScorer(double), nil)
		settled(time.Second)
		dead := broker.read("dead")
		if len(dead) != 1 {
			t.Fatalf("%d dead letters", len(dead))
		}
		broker.write(serving.StreamMessage{Stream: "in", Key: dead[0].Key, Value: dead[0].Value, Headers: dead[0].Headers}) // as it is
		broker.write(jsonRecord("a", 1))
		settled(time.Second)
		if got := results(t, broker, "out"); len(got) != 1 {
			t.Errorf("results %+v", got)
		}
		again := broker.read("dead")[1]
		reasons := 0
		for _, h := range again.Headers {
			if h.Name == stream.HeaderReason {
				reasons++
			}
		}
		if reasons != 1 || again.Header(stream.HeaderPlace) != "0/1" {
			t.Errorf("a dead letter that died again has the headers %s", again.Headers)
		}
	})
}

func TestDefaults(t *testing.T) {
	answer := func(cause serving.Cause) *scorer {
		return newScorer(func(context.Context, *serving.Query) (serving.Prediction, error) { return missing(cause), nil })
	}
	t.Run("are results that say so", func(t *testing.T) {
		bubble(t, func(t *testing.T) {
			broker := newMemory("in")
			broker.write(jsonRecord("a", 1), protobufRecord("b", 1))
			j, _, _ := run(t, broker, answer(serving.NoReplica), func(c *Config) { c.Patience = -1 })
			settled(time.Second)
			got := results(t, broker, "out")
			for _, id := range []string{"a", "b"} {
				if r := got[id]; !r.Default || string(r.Output) != "-1" || r.Explanation != "No connected models found for query" {
					t.Errorf("result %+v", r)
				}
			}
			if got := j.Status().Tally; got != (Tally{Records: 2, Results: 2, Defaults: 2}) {
				t.Errorf("tally %+v", got)
			}
		})
	})
	t.Run("become dead letters", func(t *testing.T) {
		bubble(t, func(t *testing.T) {
			broker := newMemory("in")
			broker.write(jsonRecord("a", 1))
			run(t, broker, answer(serving.ModelError), func(c *Config) { c.Defaults, c.Patience = DefaultsDeadLetter, time.Hour })
			settled(time.Second)
			dead := broker.read("dead")
			if len(dead) != 1 || dead[0].Header(stream.HeaderKind) != "default" || !strings.Contains(dead[0].Header(stream.HeaderReason), "Model error") {
				t.Errorf("dead letters %+v", dead)
			}
		})
	})
	for _, cause := range serving.Causes()[1:] {
		t.Run("patience with "+cause.String(), func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				began := time.Now()
				s := newScorer(func(ctx context.Context, q *serving.Query) (serving.Prediction, error) {
					if time.Since(began) < 20*time.Second {
						return missing(cause), nil
					}
					return double(ctx, q)
				})
				broker := newMemory("in")
				broker.write(jsonRecord("a", 1))
				run(t, broker, s, func(c *Config) { c.Patience = time.Minute })
				settled(time.Minute)
				passes := !cause.FromModel()
				if got := results(t, broker, "out")["a"]; got.Default == passes {
					t.Errorf("result %+v", got)
				}
				if n := len(s.asked()); passes != (n > 5 && n < 35) {
					t.Errorf("asked %d times", n)
				}
			})
		})
	}
	t.Run("after all patience", func(t *testing.T) {
		bubble(t, func(t *testing.T) {
			broker := newMemory("in")
			broker.write(jsonRecord("a", 1))
			s := answer(serving.RefusedFull)
			run(t, broker, s, func(c *Config) { c.Patience = 10 * time.Second })
			settled(9 * time.Second)
			if n := len(broker.read("out")); n != 0 && n != 1 {
				t.Errorf("%d results", n)
			}
			settled(2 * time.Second)
			for i, q := range s.asked() {
				if last := i == len(s.asked())-1; q.Again == last {
					t.Errorf("asked %d of %d: will it be retried? %v", i, len(s.asked()), q.Again)
				}
			}
			if got := results(t, broker, "out")["a"]; !got.Default {
				t.Errorf("result %+v", got)
			}
		})
	})
}

// TestTheOwnAppIsWaitedFor: else all records would be dead letters while it is made anew.
func TestTheOwnAppIsWaitedFor(t *testing.T) {
	bubble(t, func(t *testing.T) {
		broker, log := newMemory("in"), &journal.Journal{}
		broker.write(jsonRecord("a", 1))
		s := newScorer(double)
		apps := s.apps
		s.set(nil)
		j, _, _ := run(t, broker, s, func(c *Config) { c.Log = log.Logger() })
		settled(time.Minute)
		if err := j.Ready(); err == nil || !strings.Contains(err.Error(), "the catalog is not known") || j.Status().InFlight != 1 {
			t.Errorf("ready: %v, status %+v", err, j.Status())
		}
		s.set(map[string]*serving.App{})
		settled(time.Minute)
		if err := j.Ready(); err == nil || !strings.Contains(err.Error(), `app double: no such app`) {
			t.Errorf("ready: %v", err)
		}
		s.set(apps)
		settled(time.Minute)
		if err := j.Ready(); err != nil || len(broker.read("out")) != 1 || len(broker.read("dead")) != 0 {
			t.Errorf("ready: %v; %d results", err, len(broker.read("out")))
		}
		if warned, mended := log.Count("cannot predict"), log.Count("can predict with app double again"); warned != 1 || mended != 1 {
			t.Errorf("it was said %d times, and %d times that it is over", warned, mended)
		}
	})
}

// TestAnAppThatGoesWhileItIsAsked is waited for if it is the job's own.
func TestAnAppThatGoesWhileItIsAsked(t *testing.T) {
	bubble(t, func(t *testing.T) {
		broker := newMemory("in")
		own := jsonRecord("own", 1)
		named := serving.StreamMessage{Stream: "in", Value: []byte(`{"uuid": "named", "input": "text", "app": "words"}`)}
		broker.write(own, named)
		began := time.Now()
		s := newScorer(func(ctx context.Context, q *serving.Query) (serving.Prediction, error) {
			if time.Since(began) < 30*time.Second {
				return serving.Prediction{}, serving.ErrUnknownApp
			}
			return double(ctx, q)
		})
		run(t, broker, s, func(c *Config) { c.Apps = map[string]string{"words": "length"} })
		settled(time.Minute)
		if got := results(t, broker, "out"); len(got) != 1 || string(got["own"].Output) != "2" {
			t.Errorf("results %+v", got)
		}
		if dead := broker.read("dead"); len(dead) != 1 || dead[0].Header(stream.HeaderKind) != "unknown_app" {
			t.Errorf("dead letters %+v", dead)
		}
	})
}

func TestATooLargeResultBecomesADeadLetter(t *testing.T) {
	bubble(t, func(t *testing.T) {
		broker := newMemory("in")
		broker.largest = 2000
		large := jsonRecord("large", 1)
		large.Value = append(large.Value[:len(large.Value)-1], []byte(`, "more": "`+strings.Repeat("x", 3000)+`"}`)...)
		broker.write(jsonRecord("a", 1), large, jsonRecord("b", 2), jsonRecord("c", 3))
		s := newScorer(func(ctx context.Context, q *serving.Query) (serving.Prediction, error) {
			p, err := double(ctx, q)
			if string(p.Output) == "2" || string(p.Output) == "4" {
				p.Output = []byte(`"` + strings.Repeat("x", 3000) + `"`)
			}
			return p, err
		})
		j, _, _ := run(t, broker, s, nil)
		settled(time.Minute)
		if got := results(t, broker, "out"); len(got) != 1 || string(got["c"].Output) != "6" {
			t.Errorf("results %+v", got)
		}
		dead := broker.read("dead")
		if len(dead) != 3 {
			t.Fatalf("%d dead letters", len(dead))
		}
		// Records without keys leave in any order.
		slices.SortFunc(dead, func(a, b serving.StreamRecord) int {
			return strings.Compare(a.Header(stream.HeaderPlace), b.Header(stream.HeaderPlace))
		})
		for i, id := range []string{"a", "large", "b"} {
			d := dead[i]
			if d.Header(stream.HeaderKind) != "result_too_large" || !strings.Contains(string(d.Value), id) {
				t.Errorf("dead letter %s of %.40s", d.Headers, d.Value)
			}
			if whole := d.Header(stream.HeaderTruncated) == ""; whole != (id != "large") {
				t.Errorf("the dead letter of %s is whole: %v", id, whole)
			}
		}
		if dead[1].Header(stream.HeaderTruncated) != strconv.Itoa(len(large.Value)) || len(dead[1].Value) != 1<<10 {
			t.Errorf("%s, with %d bytes", dead[1].Headers, len(dead[1].Value))
		}
		if err := j.Ready(); err != nil {
			t.Error(err)
		}
	})
}

// TestADeadLetterThatNobodyTakes waits for somebody to let the broker take more.
func TestADeadLetterThatNobodyTakes(t *testing.T) {
	bubble(t, func(t *testing.T) {
		broker := newMemory("in")
		broker.largest = -1 // not even an empty value
		broker.write(jsonRecord("a", 1))
		j, _, _ := run(t, broker, newScorer(double), nil)
		settled(time.Minute)
		if err := j.Ready(); err == nil || !strings.Contains(err.Error(), "too large") {
			t.Errorf("ready: %v", err)
		}
		broker.mu.Lock()
		broker.largest = 10
		broker.mu.Unlock()
		settled(time.Minute)
		if err := j.Ready(); err != nil || len(broker.read("dead")) != 1 {
			t.Errorf("ready: %v, %d dead letters", err, len(broker.read("dead")))
		}
	})
}

// TestBrokerFailures: what cannot be done is tried again, and said once.
func TestBrokerFailures(t *testing.T) {
	for _, one := range []struct{ operation, said string }{
		{"poll", "cannot poll records"}, {"commit", "cannot commit results"},
	} {
		t.Run(one.operation, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				broker, log := newMemory("in"), &journal.Journal{}
				registry := obs.NewRegistry()
				var tries atomic.Int64
				c := broker.join()
				broken := errors.New("the broker is broken")
				c.fail = func(operation string) error {
					if operation == one.operation && tries.Add(1) <= 20 {
						return broken
					}
					return nil
				}
				broker.write(jsonRecord("a", 1))
				j, _, _ := run(t, broker, newScorer(double), func(cfg *Config) {
					cfg.Consumer, cfg.Log, cfg.Metrics = c, log.Logger(), NewMetrics(registry)
				})
				settled(10 * time.Second)
				if err := j.Ready(); !errors.Is(err, broken) || !strings.Contains(j.Status().Condition, one.said) {
					t.Errorf("ready: %v, status %+v", err, j.Status())
				}
				settled(5 * time.Minute)
				if err := j.Ready(); err != nil || len(results(t, broker, "out")) != 1 {
					t.Errorf("ready: %v, results %+v", err, broker.read("out"))
				}
				if warned, mended := log.Count(one.said), log.Count("again"); warned != 1 || mended != 1 {
					t.Errorf("it was said %d times, and %d times that it is over", warned, mended)
				}
				if n := gathered(t, registry)[`topsail_stream_failures_total{operation="`+one.operation+`",stream="job"}`]; n != 20 {
					t.Errorf("%v failures are counted", n)
				}
			})
		})
	}
}

// empty polls nothing the first time.
type empty struct {
	*member
	polled bool
}

func (e *empty) Poll(ctx context.Context, most int) ([]serving.StreamRecord, error) {
	if !e.polled {
		e.polled = true
		return nil, nil
	}
	return e.member.Poll(ctx, most)
}

// TestAConsumerThatIsWrong does not bring the job down.
func TestAConsumerThatIsWrong(t *testing.T) {
	bubble(t, func(t *testing.T) {
		broker := newMemory("in")
		broker.write(jsonRecord("a", 1))
		j, _, _ := run(t, broker, newScorer(double), func(c *Config) { c.Consumer = &empty{member: broker.join()} })
		settled(time.Minute)
		if len(results(t, broker, "out")) != 1 || !strings.Contains(j.Status().LastError, "neither records nor an error") {
			t.Errorf("results %+v, status %+v", broker.read("out"), j.Status())
		}
	})
}

// TestLostRecords are forgotten, and not of interest.
func TestLostRecords(t *testing.T) {
	bubble(t, func(t *testing.T) {
		broker, log := newMemory("in"), &journal.Journal{}
		registry := obs.NewRegistry()
		c := broker.join()
		var tries atomic.Int64
		c.fail = func(operation string) error {
			if operation == "commit" && tries.Add(1) <= 3 {
				return serving.ErrRecordsLost
			}
			return nil
		}
		broker.write(jsonRecord("a", 1), jsonRecord("b", 1))
		j, _, _ := run(t, broker, newScorer(double), func(cfg *Config) {
			cfg.Consumer, cfg.Log, cfg.Metrics = c, log.Logger(), NewMetrics(registry)
		})
		settled(time.Minute)
		if len(results(t, broker, "out")) != 2 || j.Status().Lost != 3 || log.Count("WARN") != 0 {
			t.Errorf("results %+v, status %+v", broker.read("out"), j.Status())
		}
		if n := gathered(t, registry)[`topsail_stream_lost_batches_total{stream="job"}`]; n != 3 {
			t.Errorf("%v lost batches are counted", n)
		}
	})
}

// TestStopping finishes what is in flight, within its bound.
func TestStopping(t *testing.T) {
	for _, one := range []struct {
		name   string
		takes  time.Duration
		commit bool
	}{{"in time", 5 * time.Second, true}, {"too late", 15 * time.Second, false}} {
		t.Run(one.name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				broker := newMemory("in")
				broker.write(jsonRecord("a", 1))
				s := newScorer(func(ctx context.Context, q *serving.Query) (serving.Prediction, error) {
					select {
					case <-time.After(one.takes):
						return double(ctx, q)
					case <-ctx.Done():
						return serving.Prediction{}, ctx.Err()
					}
				})
				_, _, stop := run(t, broker, s, nil)
				settled(time.Second)
				began := time.Now()
				time.AfterFunc(time.Millisecond, func() { broker.write(jsonRecord("b", 2)) }) // must not be begun any more
				stop()
				if took, want := time.Since(began), min(one.takes-time.Second, 10*time.Second); took != want {
					t.Errorf("it stopped after %v, not %v", took, want)
				}
				want := 0
				if one.commit {
					want = 1
				}
				if got := results(t, broker, "out"); len(got) != want || len(s.asked()) != 1 {
					t.Errorf("results %+v of %d queries", got, len(s.asked()))
				}
				run(t, broker, newScorer(double), nil)
				settled(time.Second)
				if got := results(t, broker, "out"); len(got) != 2 {
					t.Errorf("results %+v after another one took over", got)
				}
			})
		})
	}
}

// TestOneBatchInHand: it polls no more before the last batch is committed, and no more
// than it was told.
func TestOneBatchInHand(t *testing.T) {
	bubble(t, func(t *testing.T) {
		broker := newMemory("in")
		for i := range 100 {
			broker.write(jsonRecord(strconv.Itoa(i), 1))
		}
		registry := obs.NewRegistry()
		s := newScorer(func(ctx context.Context, q *serving.Query) (serving.Prediction, error) {
			time.Sleep(time.Second)
			return double(ctx, q)
		})
		s.replicas = 7
		j, _, _ := run(t, broker, s, func(c *Config) { c.Batch, c.Metrics = 7, NewMetrics(registry) })
		for range 10 {
			settled(850 * time.Millisecond)
			if n := j.Status().InFlight; n < 1 || n > 7 {
				t.Fatalf("%d in flight", n)
			}
			if held := gathered(t, registry)[`topsail_stream_in_flight_seconds{stream="job"}`]; held <= 0 || held > 1 {
				t.Fatalf("in flight for %v s", held)
			}
		}
		settled(time.Minute)
		if n := len(results(t, broker, "out")); n != 100 || s.most != 7 {
			t.Errorf("%d results, %d at a time", n, s.most)
		}
		if held := gathered(t, registry)[`topsail_stream_in_flight_seconds{stream="job"}`]; held != 0 {
			t.Errorf("in flight for %v s", held)
		}
	})
}

// TestNothingIsLostOrDoubled has members that come, fail at every moment and go, over a
// broker that commits both or neither.
func TestNothingIsLostOrDoubled(t *testing.T) {
	for seed := range uint64(8) {
		t.Run(strconv.Itoa(int(seed)), func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				const n = 500
				chance := rand.New(rand.NewPCG(seed, 1))
				broker := newMemory("in", "more")
				broker.takeover = 3 * time.Second
				for i := range n {
					record := jsonRecord(strconv.Itoa(i), float64(i))
					if i%3 == 0 {
						record.Stream = "more"
					}
					if i%10 == 0 {
						record.Value = []byte("garbage")
					}
					broker.write(record)
				}
				for life := 0; life < 60 && len(broker.read("out"))+len(broker.read("dead")) < n; life++ {
					c := broker.join()
					var mu sync.Mutex // polls and commits go side by side
					fails := rand.New(rand.NewPCG(seed, uint64(life)))
					c.fail = func(operation string) error {
						mu.Lock()
						defer mu.Unlock()
						if operation != "lag" && fails.IntN(6) == 0 {
							return errors.New(operation + " fails")
						}
						return nil
					}
					s := newScorer(func(ctx context.Context, q *serving.Query) (serving.Prediction, error) {
						select {
						case <-time.After(time.Duration(len(q.Input.Data)) * 10 * time.Millisecond):
						case <-ctx.Done():
							return serving.Prediction{}, ctx.Err()
						}
						return double(ctx, q)
					})
					_, _, stop := run(t, broker, s, func(cfg *Config) {
						cfg.Consumer, cfg.Batch, cfg.Drain = c, 1+chance.IntN(40), time.Duration(1+chance.IntN(100))*time.Millisecond
					})
					settled(time.Duration(chance.IntN(3000)) * time.Millisecond)
					if chance.IntN(2) == 0 {
						stop() // else it goes on beside the next ones
					}
				}
				run(t, broker, newScorer(double), nil)
				settled(time.Minute)
				if got := results(t, broker, "out"); len(got) != n-n/10 {
					t.Errorf("%d results", len(got))
				}
				places := map[string]bool{}
				for _, d := range broker.read("dead") {
					at := d.Header(stream.HeaderStream) + d.Header(stream.HeaderPlace)
					if places[at] || d.Header(stream.HeaderKind) != "unreadable" {
						t.Errorf("dead letter %s", d.Headers)
					}
					places[at] = true
				}
				if len(places) != n/10 {
					t.Errorf("%d dead letters", len(places))
				}
			})
		})
	}
}

func TestConfigIsChecked(t *testing.T) {
	good := Config{Scorer: newScorer(double), App: "double", Config: stream.Config{
		Name: "job", Consumer: newMemory().join(), Streams: []string{"in"}, Output: "out", DeadLetter: "dead",
	}}
	if _, err := New(good); err != nil {
		t.Fatal(err)
	}
	for want, spoil := range map[string]func(*Config){
		"needs a name":                  func(c *Config) { c.Name = "" },
		"needs a consumer and a scorer": func(c *Config) { c.Scorer = nil },
		"needs an app":                  func(c *Config) { c.App = "" },
		"app name \"a b\"":              func(c *Config) { c.App = "a b" },
		`apps: "x" must be`:             func(c *Config) { c.Apps = map[string]string{"x": ""} },
		`apps: "" must be`:              func(c *Config) { c.Apps = map[string]string{"": "double"} },
		"needs an output":               func(c *Config) { c.Output = "" },
		"needs a dead_letter":           func(c *Config) { c.DeadLetter = "" },
		"dead_letter is an input":       func(c *Config) { c.DeadLetter = "in" },
		"output is an input":            func(c *Config) { c.Output = "in" },
		"may be negative":               func(c *Config) { c.Batch = -1 },
		"between 1 and 64 owners":       func(c *Config) { c.Spread.HotKeys = map[string]int{"a": 65} },
		"between 0 and 1":               func(c *Config) { c.Spread.HotShare = 1.5 },
	} {
		cfg := good
		spoil(&cfg)
		if _, err := New(cfg); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
}

// gathered are the samples of counters and gauges, by name and labels.
func gathered(t testing.TB, r *obs.Registry) map[string]float64 {
	t.Helper()
	families, err := r.Gather()
	require.NoError(t, err)
	all := map[string]float64{}
	for _, f := range families {
		for _, m := range f.GetMetric() {
			var labels []string
			for _, l := range m.GetLabel() {
				labels = append(labels, fmt.Sprintf("%s=%q", l.GetName(), l.GetValue()))
			}
			name := f.GetName() + "{" + strings.Join(labels, ",") + "}"
			switch {
			case m.GetHistogram() != nil:
				all[name] = float64(m.GetHistogram().GetSampleCount())
			default:
				all[name] = m.GetCounter().GetValue() + m.GetGauge().GetValue()
			}
		}
	}
	return all
}

// TestLag shows how many records wait, and says so when the broker refuses: Poll does not.
func TestLag(t *testing.T) {
	bubble(t, func(t *testing.T) {
		broker, registry := newMemory("in"), obs.NewRegistry()
		var refuses atomic.Bool
		c := broker.join()
		refused := errors.New("no such topic")
		c.fail = func(operation string) error {
			if operation == "lag" && refuses.Load() {
				return refused
			}
			return nil
		}
		j, _, _ := run(t, broker, newScorer(double), func(cfg *Config) { cfg.Consumer, cfg.Metrics = c, NewMetrics(registry) })
		shown := func(metric string) (float64, bool) {
			v, ok := gathered(t, registry)[metric+`{stream="job"}`]
			return v, ok
		}
		settled(time.Second)
		if lag, ok := shown("topsail_stream_lag_records"); !ok || lag != 0 || *j.Status().Lag != 0 {
			t.Errorf("a lag of %v, %v", lag, ok)
		}
		refuses.Store(true)
		settled(10 * time.Second)
		condition := gathered(t, registry)[`topsail_stream_condition{condition="cannot consume from the broker",stream="job"}`]
		if lag, _ := shown("topsail_stream_lag_records"); !math.IsNaN(lag) || condition != 1 || !errors.Is(j.Ready(), refused) || j.Status().Lag != nil {
			t.Errorf("the broker refuses: ready is %v, condition %v", j.Ready(), condition)
		}
		refuses.Store(false)
		settled(10 * time.Second)
		if condition := gathered(t, registry)[`topsail_stream_condition{condition="cannot consume from the broker",stream="job"}`]; condition != 0 || j.Ready() != nil {
			t.Errorf("it is over: ready is %v", j.Ready())
		}
	})
}

// TestLosing has a condition while batches are lost again and again; one alone is none.
func TestLosing(t *testing.T) {
	bubble(t, func(t *testing.T) {
		broker := newMemory("in")
		var left atomic.Int64
		c := broker.join()
		c.fail = func(operation string) error {
			if operation == "commit" && left.Add(-1) >= 0 {
				return serving.ErrRecordsLost
			}
			return nil
		}
		j, _, _ := run(t, broker, newScorer(double), func(cfg *Config) { cfg.Consumer = c })
		left.Store(1)
		broker.write(jsonRecord("a", 1))
		settled(5 * time.Second)
		if err := j.Ready(); err != nil {
			t.Errorf("one batch is lost: %v", err)
		}
		left.Store(1)
		broker.write(jsonRecord("b", 1))
		settled(5 * time.Second)
		if err := j.Ready(); err == nil || !strings.Contains(j.Status().Condition, "another member") {
			t.Errorf("two batches are lost: %v", err)
		}
		settled(2 * time.Minute)
		if err := j.Ready(); err != nil {
			t.Errorf("long ago: %v", err)
		}
	})
}

// TestGuaranteedTime has an app that decides after 100 ms answer a record every 10 ms: each result leaves within 110 ms.
func TestGuaranteedTime(t *testing.T) {
	bubble(t, func(t *testing.T) {
		const limit, every, settles, n = 100 * time.Millisecond, 10 * time.Millisecond, 200, 1000
		broker := newMemory("in")
		s := newScorer(func(ctx context.Context, q *serving.Query) (serving.Prediction, error) {
			time.Sleep(limit)
			return double(ctx, q)
		})
		run(t, broker, s, nil)
		for i := range n {
			broker.write(jsonRecord(strconv.Itoa(i), 1))
			time.Sleep(every)
		}
		settled(time.Minute)
		asked := map[string]time.Time{}
		for i, r := range broker.read("in") {
			if i >= settles { // the concurrency is found by then
				asked[strconv.Itoa(i)] = r.At
			}
		}
		for _, r := range broker.read("out") {
			response, err := ParseResponse(r.Value, stream.JSON)
			require.NoError(t, err)
			if at, is := asked[response.UUID]; is && r.At.Sub(at) > limit+10*time.Millisecond {
				t.Errorf("the result of %s leaves after %v", response.UUID, r.At.Sub(at))
			}
		}
		if got := len(broker.read("out")); got != n {
			t.Errorf("%d results", got)
		}
	})
}

// TestSlowMinority has one record in a hundred take long: the others do not wait for it, but those of its key.
func TestSlowMinority(t *testing.T) {
	for _, order := range []stream.Order{stream.OrderNone, stream.OrderKey} {
		t.Run(order.String(), func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				const n, keys = 2000, 7
				broker := newMemory("in")
				s := newScorer(func(ctx context.Context, q *serving.Query) (serving.Prediction, error) {
					p, err := double(ctx, q)
					if string(p.Output) == "2" {
						time.Sleep(2 * time.Second)
					} else {
						time.Sleep(time.Millisecond)
					}
					return p, err
				})
				s.replicas = 4
				run(t, broker, s, func(c *Config) { c.Order = order })
				for i := range n {
					slow := 0.
					if i%100 == 50 {
						slow = 1
					}
					m := jsonRecord(strconv.Itoa(i), slow)
					m.Key = []byte(strconv.Itoa(i % keys))
					broker.write(m)
					time.Sleep(time.Second / 60)
				}
				settled(time.Minute)
				in, last, late := broker.read("in"), map[string]int{}, 0
				for _, r := range broker.read("out") {
					response, err := ParseResponse(r.Value, stream.JSON)
					require.NoError(t, err)
					i, err := strconv.Atoi(response.UUID)
					require.NoError(t, err)
					if key := string(r.Key); order == stream.OrderKey {
						if i < last[key] {
							t.Errorf("the result of %d comes after that of %d", i, last[key])
						}
						last[key] = i
					}
					if i%100 != 50 && i > 200 && r.At.Sub(in[i].At) > 10*time.Millisecond {
						late++
					}
				}
				if most := map[stream.Order]int{stream.OrderKey: n / keys * 5 / 4}[order]; late > most || len(broker.read("out")) != n {
					t.Errorf("%d results are late, of %d", late, len(broker.read("out")))
				}
			})
		})
	}
}

// Records are one priority below the clients of their app, unless the job says otherwise.
func TestThePriorityOfRecords(t *testing.T) {
	given := 0
	for _, c := range []struct {
		app  int
		job  *int
		want int
	}{{0, nil, 1}, {1, nil, 2}, {serving.LowestPriority, nil, serving.LowestPriority}, {2, &given, 0}} {
		bubble(t, func(t *testing.T) {
			broker, s := newMemory("in"), newScorer(double)
			s.apps["double"].Priority = c.app
			broker.write(jsonRecord("a", 1))
			run(t, broker, s, func(cfg *Config) { cfg.Priority = c.job })
			settled(time.Second)
			if asked := s.asked(); len(asked) != 1 || asked[0].Priority != c.want {
				t.Errorf("of an app of priority %d records are asked with %+v, want priority %d", c.app, asked, c.want)
			}
		})
	}
}
