//go:build system

package main

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/topsail-serving/topsail/serving"
	"github.com/topsail-serving/topsail/stream"
	"github.com/topsail-serving/topsail/stream/records"
	"github.com/topsail-serving/topsail/test/brokers"
	"github.com/topsail-serving/topsail/test/require"
	"github.com/topsail-serving/topsail/test/servers"
)

// streamBroker is a real broker, and how a test writes to it and reads what is committed.
type streamBroker struct {
	server *servers.Server // that a test may kill
	addrs  []string
	lines  string // of a [[stream]], which say where it is
	create func(t *testing.T, streams ...string)
	streamClient
}

func (b *streamBroker) kafka() bool { return b.server.Name == "kafka" }

// streamClient writes and reads streams past the product.
type streamClient interface {
	Write(ctx context.Context, messages []serving.StreamMessage) error
	Read(ctx context.Context, stream string) ([]serving.StreamRecord, error)
}

// onBrokers runs a test on each kind of broker.
func onBrokers(t *testing.T, test func(t *testing.T, b *streamBroker)) {
	t.Run("redis", func(t *testing.T) { test(t, startRedis(t)) })
	t.Run("kafka", func(t *testing.T) { test(t, startKafka(t)) })
}

func startRedis(t *testing.T) *streamBroker {
	t.Helper()
	port, err := servers.FreePort()
	require.NoError(t, err)
	server, err := servers.Redis(t.TempDir(), port)
	require.NoError(t, err)
	startServer(t, server)
	return &streamBroker{
		server: server, addrs: []string{server.Addr},
		lines:        fmt.Sprintf("broker = 'redis'\naddrs = [%q]\ntakeover_micros = 60000000\npatience_micros = 50000000\n", server.Addr),
		create:       func(*testing.T, ...string) {}, // they are there when they are written
		streamClient: brokers.RedisAt(server.Addr),
	}
}

func startKafka(t *testing.T) *streamBroker {
	t.Helper()
	ports, err := servers.FreePorts(3)
	require.NoError(t, err)
	server, err := servers.Kafka(t.TempDir(), ports, servers.KafkaOptions{})
	require.NoError(t, err)
	startServer(t, server)
	kafka := brokers.KafkaAt(server.Addr)
	return &streamBroker{
		server: server, addrs: []string{server.Addr},
		lines: fmt.Sprintf("broker = 'kafka'\naddrs = [%q]\ntakeover_micros = 3000000\npatience_micros = 50000000\n", server.Addr),
		create: func(t *testing.T, streams ...string) {
			for _, stream := range streams {
				require.NoError(t, kafka.CreateTopic(t.Context(), stream, 4, nil))
			}
		},
		streamClient: kafka,
	}
}

func startServer(t *testing.T, server *servers.Server) {
	t.Helper()
	t.Cleanup(server.Kill)
	if err := server.Start(t.Context()); err != nil {
		t.Fatalf("%v\n%s", err, server.LogTail())
	}
}

// read is all that is committed in a stream. A broker that is away has it later.
func (b *streamBroker) read(t *testing.T, name string) []serving.StreamRecord {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	for ctx.Err() == nil {
		if all, err := b.Read(ctx, name); err == nil {
			return all
		}
		time.Sleep(50 * time.Millisecond) // the tick of a poll
	}
	t.Fatalf("the stream %s cannot be read within %v", name, patience)
	return nil
}

const streamKeys = 8

// asks are records that ask for the sums of i and 1, in both formats.
func asks(stream_ string, from, to int) []serving.StreamMessage {
	var all []serving.StreamMessage
	for i := from; i < to; i++ {
		m := serving.StreamMessage{Stream: stream_, Key: fmt.Appendf(nil, "key-%d", i%streamKeys)}
		if i%2 == 0 {
			m.Value = fmt.Appendf(nil, `{"uuid": "%d", "input": [%d, 1]}`, i, i)
		} else {
			var data []byte
			for _, x := range []float64{float64(i), 1} {
				data = binary.LittleEndian.AppendUint64(data, math.Float64bits(x))
			}
			m.Value = (&records.Request{UUID: strconv.Itoa(i), Data: data}).AppendProtobuf(nil)
		}
		all = append(all, m)
	}
	return all
}

// formatOf is the format of a record of a stream in both.
func formatOf(r serving.StreamRecord) stream.Format {
	if r.Value[0] == '{' {
		return stream.JSON
	}
	return stream.Protobuf
}

// sums reads the results, and wants each to be right, and the only one of its record.
func (b *streamBroker) sums(t *testing.T, name string, ordered bool) map[int]records.Response {
	t.Helper()
	all, last, places := map[int]records.Response{}, map[string]int{}, map[int]string{}
	for _, r := range b.read(t, name) {
		format := formatOf(r)
		result, err := records.ParseResponse(r.Value, format)
		require.NoError(t, err)
		i, err := strconv.Atoi(result.UUID)
		if err != nil {
			t.Fatalf("a result of %q", result.UUID)
		}
		if at, twice := places[i]; twice {
			t.Fatalf("record %d has two results, at %s and %s", i, at, r.Place)
		}
		places[i] = r.Place
		if sum, err := strconv.ParseFloat(string(result.Output), 64); err != nil || sum != float64(i+1) || result.Default {
			t.Fatalf("the result of %d is %+v", i, result)
		}
		if key := fmt.Sprintf("key-%d", i%streamKeys); string(r.Key) != key || (format == stream.JSON) != (i%2 == 0) {
			t.Fatalf("the result of %d is %+v", i, r)
		}
		if before, some := last[string(r.Key)]; ordered && some && before > i {
			t.Fatalf("the result of %d comes after that of %d", i, before)
		}
		last[string(r.Key)] = i
		all[i] = result
	}
	return all
}

func streamConfig(b *streamBroker, in, out, dead string, more string) string {
	return fmt.Sprintf("\n[[stream]]\nname = 'sums'\napp = 'sum'\ninput = [%q]\noutput = %q\ndead_letter = %q\n%s%s", in, out, dead, b.lines, more)
}

// TestStreamsInLocalMode serves a stream beside everything else, through a change of its model.
func TestStreamsInLocalMode(t *testing.T) {
	onBrokers(t, func(t *testing.T, b *streamBroker) {
		const half = 1000
		b.create(t, "in", "out", "dead")
		if err := b.Write(t.Context(), asks("in", 0, half)); err != nil {
			t.Fatal(err)
		}
		poison := []serving.StreamMessage{
			{Stream: "in", Value: []byte("garbage")}, {Stream: "in", Value: []byte(`{"uuid": "x", "input": "text"}`)},
			{Stream: "in", Key: []byte("key-3"), Value: []byte(`{"uuid": "3", "input": [3, 1]}`)}, {Stream: "in", Value: []byte(`{"input": [1]}`)},
			{Stream: "in", Value: []byte(`{"uuid": "y", "input": [1], "app": "other"}`)}, {Stream: "in", Value: bytes.Repeat([]byte("x"), 5000)},
		}
		if err := b.Write(t.Context(), poison); err != nil {
			t.Fatal(err)
		}
		dir := t.TempDir()
		second := fmt.Sprintf("\n[[model]]\nname = \"sum\"\nversion = \"2\"\ninput_type = \"doubles\"\ncommand = %s\nenv = { TOPSAIL_TEST = %q }\n", quoted(programs.gosum), dir)
		config := sumConfig(dir, quoted(programs.gosum))
		in := start(t, dir, config+streamConfig(b, "in", "out", "dead", "max_record_bytes = 4000\nbatch = 100\napp_patience_micros = 0\n")).ready()
		in.until("results", func() bool { return len(b.sums(t, "out", true)) == half })

		// The model is replaced while records go on to come.
		replaced := filepath.Join(dir, "replaced.toml")
		require.NoError(t, os.WriteFile(replaced, []byte(config+second), 0o600))
		var writing sync.WaitGroup
		writing.Go(func() {
			for from := half; from < 2*half; from += 50 {
				if err := b.Write(t.Context(), asks("in", from, from+50)); err != nil {
					t.Error(err)
				}
				time.Sleep(20 * time.Millisecond) // a source of records
			}
		})
		person := operate(t, in)
		person.do("apply", "-f", replaced, "--yes")
		writing.Wait()
		in.until("all results", func() bool { return len(b.sums(t, "out", true)) == 2*half })
		person.ready("sum:2", 1)
		if err := b.Write(t.Context(), asks("in", 2*half, 2*half+100)); err != nil {
			t.Fatal(err)
		}
		in.until("the last results", func() bool { return len(b.sums(t, "out", true)) == 2*half+100 })
		versions := map[string]int{}
		for i, r := range b.sums(t, "out", true) {
			versions[r.Version]++
			if i < half && r.Version != "1" || i >= 2*half && r.Version != "2" {
				t.Errorf("record %d was predicted by version %s", i, r.Version)
			}
		}
		if versions["1"]+versions["2"] != 2*half+100 {
			t.Errorf("versions %v", versions)
		}

		reasons := b.refusals(t, "dead")
		if want := map[string]int{"unreadable": 1, "wrong_input": 1, "repeated_id": 1, "no_id": 1, "unknown_app": 1, "record_too_large": 1}; fmt.Sprint(reasons) != fmt.Sprint(want) {
			t.Errorf("dead letters for %v", reasons)
		}
		var page struct{ Streams []records.Status }
		if err := json.Unmarshal([]byte(fetched(t, in.ops("/streams"))), &page); err != nil || len(page.Streams) != 1 {
			t.Fatalf("%+v, %v", page, err)
		}
		if got, want := page.Streams[0].Tally, (records.Tally{Records: 2*half + 106, Results: 2*half + 100, DeadLetters: 6}); got != want {
			t.Errorf("the page says %+v, want %+v", got, want)
		}
		if metrics := fetched(t, in.ops("/metrics")); !strings.Contains(metrics, `topsail_stream_records_total{result="predicted",stream="sums"} 2100`) {
			t.Error("the metrics do not say how many were predicted")
		}
		if err := in.stop(os.Interrupt); err != nil {
			t.Errorf("ended with %v:\n%s", err, in.output())
		}
	})
}
