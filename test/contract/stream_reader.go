package contract

import (
	"context"
	"errors"
	"strconv"
	"time"

	"github.com/topsail-serving/topsail/serving"
)

// follows reads what is written while it waits, and no longer than it may.
func (s *streams) follows() {
	ctx, cancel := context.WithTimeout(s.Context(), streamPatience)
	defer cancel()
	stream := s.Out[1]
	if n := len(s.Read(stream)); n != 0 {
		s.Errorf("%d records of none", n)
	}
	r, err := s.Follow(ctx, stream)
	if err != nil {
		s.Fatal(err)
	}
	defer r.Close()
	for batch := range 2 {
		var messages []serving.StreamMessage
		for i := range 2 {
			messages = append(messages, serving.StreamMessage{Stream: stream, Value: []byte(strconv.Itoa(2*batch + i))})
		}
		s.Write(messages)
		for i := range 2 {
			records, err := r.Next(ctx, 1)
			if err != nil || len(records) != 1 || string(records[0].Value) != strconv.Itoa(2*batch+i) {
				s.Fatalf("record %d: %v, error %v", 2*batch+i, records, err)
			}
		}
	}
	short, stop := context.WithTimeout(s.Context(), 10*time.Millisecond)
	defer stop()
	if records, err := r.Next(short, 1); !errors.Is(err, context.DeadlineExceeded) {
		s.Errorf("%d records, error %v", len(records), err)
	}
}
