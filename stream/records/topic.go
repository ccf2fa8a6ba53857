package records

import (
	"context"
	"errors"
	"fmt"

	"github.com/topsail-serving/topsail/internal/retry"
	"github.com/topsail-serving/topsail/serving"
	"github.com/topsail-serving/topsail/stream"
	"github.com/topsail-serving/topsail/stream/mapping"
)

// Topic says how to read records that are not Topsail's own messages, and what their results look like.
type Topic struct {
	Record     mapping.Config
	Result     mapping.ResultConfig
	Registered bool             // schemas are in a registry
	Registry   mapping.Registry // which then is required
}

// check says everything that is wrong with a topic of the job of this name.
func (t *Topic) check(job string) (errs []error) {
	if t == nil {
		return nil
	}
	for _, one := range []struct {
		name string
		err  error
	}{{"record", t.Record.Check(t.Registered)}, {"result", t.Result.Check(t.Record.Format, t.Registered)}} {
		if one.err != nil {
			errs = append(errs, fmt.Errorf("stream %q: %s: %w", job, one.name, one.err))
		}
	}
	return errs
}

// topic reads and writes the records of a job.
type topic struct {
	mapping *mapping.Mapping
	writer  *mapping.Writer
	outputs []string
	ready   chan struct{} // closed when results can be written
}

func newTopic(cfg *Config) (*topic, error) {
	if cfg.Topic.Registered != (cfg.Topic.Registry != nil) {
		return nil, errors.New("a registry that has the schemas is needed, and only then")
	}
	t := &topic{outputs: cfg.outputs(), ready: make(chan struct{})}
	var err error
	if t.mapping, err = mapping.New(cfg.Topic.Record, cfg.Topic.Registry); err != nil {
		return nil, fmt.Errorf("record: %w", err)
	}
	if t.writer, err = mapping.NewWriter(cfg.Topic.Result, cfg.Topic.Record.Format, cfg.Topic.Registry); err != nil {
		return nil, fmt.Errorf("result: %w", err)
	}
	if !t.writer.Registers() {
		close(t.ready)
	}
	return t, nil
}

// What a job does with the registry, as its conditions name it.
const (
	readSchemas    = "read schemas from the registry"
	registerSchema = "register the schema of results"
)

// register has the schema of results registered. Until it is, records wait.
func (h *handler) register(ctx context.Context) {
	t := h.topic
	for pause := stream.Backoff(); ctx.Err() == nil; pause.Sleep(ctx) {
		err := t.writer.Register(ctx, t.outputs)
		if err == nil {
			h.job.Conditions.End(registerSchema)
			close(t.ready)
			return
		}
		if ctx.Err() == nil {
			h.job.Conditions.Begin(registerSchema, err)
		}
	}
}

// Reads implements stream.Reader.
func (h *handler) Reads() bool { return h.topic != nil }

// Read implements stream.Reader. It waits for the registry, and no longer when the job is to end.
func (h *handler) Read(ctx context.Context, r *serving.StreamRecord) (stream.Message, error) {
	select {
	case <-h.topic.ready:
	case <-h.job.Ending():
		return nil, errEnding
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	for pause := stream.Backoff(); ; {
		read, err := h.topic.mapping.Read(ctx, r)
		if err == nil || !errors.Is(err, mapping.ErrUnavailable) {
			h.job.Conditions.End(readSchemas)
			return h.message(r, read), err
		}
		if ctx.Err() == nil {
			h.job.Conditions.Begin(readSchemas, err)
		}
		if err := h.wait(ctx, &pause); err != nil {
			return nil, err
		}
	}
}

var errEnding = errors.New("the job is to end")

// wait waits a while. It fails when ctx ends, or the job is to end.
func (h *handler) wait(ctx context.Context, pause *retry.Backoff) error {
	waiting, stop := context.WithCancel(ctx)
	defer stop()
	go func() {
		defer stop()
		select {
		case <-h.job.Ending():
		case <-waiting.Done():
		}
	}()
	if !pause.Sleep(waiting) {
		return errEnding
	}
	return nil
}

// message is the message of a record that is read.
func (h *handler) message(r *serving.StreamRecord, read *mapping.Record) stream.Message {
	if read == nil {
		return nil
	}
	request := Request{UUID: read.ID, Apps: read.Apps, User: read.User, Context: read.Context, Key: read.Key, Format: stream.JSON}
	return &record{StreamRecord: r, handler: h, request: request, read: read}
}
