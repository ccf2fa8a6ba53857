package stream

import (
	"context"
	"errors"

	"github.com/topsail-serving/topsail/serving"
)

// Reader is a Handler that reads records by itself, however they are written.
type Reader interface {
	// Reads says whether it does; otherwise Parse is asked.
	Reads() bool
	// Read reads the message of a record. Its error is a Rejection, or says that the record is to be
	// redelivered. It may wait.
	Read(ctx context.Context, r *serving.StreamRecord) (Message, error)
}

// message reads the message of a record.
func (j *Job) message(ctx context.Context, it *Item) error {
	if reader, is := j.handler.(Reader); is && reader.Reads() {
		m, err := reader.Read(ctx, it.Record)
		if err == nil {
			it.Message, it.format = m, JSON
		}
		return err
	}
	var err error
	if it.format = j.cfg.Format; it.format == AnyFormat {
		it.format, err = FormatOf(it.Record.Header(HeaderContentType), it.Record.Value)
	}
	if err == nil {
		it.Message, err = j.handler.Parse(it.Record, it.format)
	}
	if err == nil {
		return nil
	}
	it.Message = nil
	if rejection, is := errors.AsType[*Rejection](err); is {
		return rejection
	}
	return Rejected(Unreadable, "%v", err)
}
