package records

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/topsail-serving/topsail/serving"
	"github.com/topsail-serving/topsail/stream"
	"github.com/topsail-serving/topsail/stream/mapping"
)

// registry is one in memory, which may be down.
type registry struct {
	mu   sync.Mutex
	err  error
	text string
}

func (r *registry) set(err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.err = err
}

func (r *registry) Schema(_ context.Context, id int) (mapping.Schema, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.err == nil && id != 1 {
		return mapping.Schema{}, mapping.ErrUnknownSchema
	}
	return mapping.Schema{Format: mapping.Avro, Text: r.text}, r.err
}

func (r *registry) Register(context.Context, string, mapping.Schema, bool) (int, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return 2, r.err
}

// avroDouble is a record of one double, 3, with the schema of an id.
func avroDouble(id byte) serving.StreamMessage {
	return serving.StreamMessage{Stream: "in", Value: []byte{0, 0, 0, 0, id, 0, 0, 0, 0, 0, 0, 8, 64}}
}

// TestRecordsWaitForTheRegistry: while it is down nothing is a dead letter, and a job can end all the same.
func TestRecordsWaitForTheRegistry(t *testing.T) {
	bubble(t, func(t *testing.T) {
		broker, known := newMemory("in"), &registry{text: `"double"`, err: errors.New("connection refused")}
		broker.write(avroDouble(1), avroDouble(9))
		change := func(c *Config) {
			c.Topic = &Topic{
				Record: mapping.Config{Format: mapping.Avro}, Result: mapping.ResultConfig{Value: mapping.OutputOnly, Format: mapping.JSON},
				Registered: true, Registry: known,
			}
		}
		j, _, stop := run(t, broker, newScorer(double), change)
		settled(time.Minute)
		if err := j.Ready(); err == nil || !strings.Contains(err.Error(), "connection refused") || !strings.Contains(j.Status().Condition, readSchemas) {
			t.Errorf("ready: %v, status %+v", err, j.Status())
		}
		began := time.Now()
		if stop(); time.Since(began) > time.Second {
			t.Errorf("it took %v to end", time.Since(began))
		}
		known.set(nil)
		j, _, _ = run(t, broker, newScorer(double), change)
		settled(time.Minute)
		out, dead := broker.read("out"), broker.read("dead")
		if len(out) != 1 || string(out[0].Value) != "6" || len(dead) != 1 || dead[0].Header(stream.HeaderKind) != string(mapping.UnknownSchema) || j.Ready() != nil {
			t.Errorf("results %s, dead letters %+v, %v", values(out), dead, j.Ready())
		}
	})
}

// TestResultsWaitForTheirSchema: until it is registered, nothing is read.
func TestResultsWaitForTheirSchema(t *testing.T) {
	bubble(t, func(t *testing.T) {
		broker, known := newMemory("in"), &registry{err: errors.New("it is not compatible")}
		broker.write(serving.StreamMessage{Stream: "in", Value: []byte(`{"x": 3}`)}, serving.StreamMessage{Stream: "in", Value: []byte(`{"x": 4}`)})
		s := newScorer(func(ctx context.Context, q *serving.Query) (serving.Prediction, error) {
			p, err := double(ctx, q)
			if string(p.Output) == "8" {
				p.Output = []byte(`"eight"`)
			}
			return p, err
		})
		j, _, _ := run(t, broker, s, func(c *Config) {
			c.Topic = &Topic{
				Record:     mapping.Config{Format: mapping.JSON, Input: "x"},
				Result:     mapping.ResultConfig{Value: mapping.OutputOnly, Format: mapping.Avro, SchemaFile: "testdata/double.avsc", Register: true},
				Registered: true, Registry: known,
			}
		})
		settled(time.Minute)
		if status := j.Status(); !strings.Contains(status.Condition, "it is not compatible") || status.Tally != (Tally{}) || len(s.asked()) > 0 {
			t.Errorf("status %+v", status)
		}
		known.set(nil)
		settled(time.Minute)
		out, dead := broker.read("out"), broker.read("dead")
		if len(out) != 1 || string(out[0].Value) != "\x00\x00\x00\x00\x02\x00\x00\x00\x00\x00\x00\x18\x40" || out[0].Header("content-type") != "application/avro" {
			t.Errorf("results %+v", out)
		}
		if len(dead) != 1 || dead[0].Header(stream.HeaderKind) != string(UnfitResult) || j.Ready() != nil {
			t.Errorf("dead letters %+v, %v", dead, j.Ready())
		}
	})
}
