package cluster

import (
	"context"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/topsail-serving/topsail/internal/adapter/nomadfleet"
	"github.com/topsail-serving/topsail/internal/process"
)

const (
	endsEach    = 4 // that are read at a time; the rest is for the next time
	endWithin   = 2 * time.Second
	endingBytes = 8 << 10 // of an output that are read
)

// ends are what containers said before they ended, which is read once for each end.
type ends struct {
	read  func(ctx context.Context, replica string, query nomadfleet.LogQuery) (io.ReadCloser, error)
	known map[string]string // by replica, and how many times it has ended
}

// tell adds to the reasons of replicas what their containers said last.
func (e *ends) tell(ctx context.Context, list []nomadfleet.Replica) {
	before, budget := e.known, endsEach
	e.known = make(map[string]string, len(before)) // what is gone is forgotten
	for i := range list {
		r := &list[i]
		if r.Restarts == 0 && r.State != nomadfleet.Failed || r.Reason == "" {
			continue
		}
		key := fmt.Sprint(r.ID, r.Restarts, r.State == nomadfleet.Failed)
		said, known := before[key]
		if !known {
			if budget == 0 {
				continue
			}
			budget--
			said = e.last(ctx, r.ID)
		}
		if e.known[key] = said; said != "" {
			r.Reason += ": " + said
		}
	}
}

// last is what a replica's container said last; empty where that cannot be read.
func (e *ends) last(ctx context.Context, replica string) string {
	ctx, cancel := context.WithTimeout(ctx, endWithin)
	defer cancel()
	for _, stderr := range []bool{true, false} {
		body, err := e.read(ctx, replica, nomadfleet.LogQuery{Stderr: stderr, Bytes: endingBytes})
		if err != nil {
			return ""
		}
		text, err := io.ReadAll(io.LimitReader(body, endingBytes))
		_ = body.Close()
		lines := strings.Split(string(text), "\n")
		if len(text) == endingBytes {
			lines = lines[1:] // of which there may be half
		}
		if said := process.LastError(lines); said != "" && err == nil {
			return said
		}
	}
	return ""
}
