package cluster

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"sync"

	"github.com/topsail-serving/topsail/internal/adapter/nomadfleet"
	"github.com/topsail-serving/topsail/jobs"
	"github.com/topsail-serving/topsail/serving"
	"github.com/topsail-serving/topsail/web/api"
)

const (
	lineBytes = 160      // that a line has on average: Nomad counts bytes, and people lines
	maxLine   = 64 << 10 // a longer one is taken apart
)

// Ended implements api.Replicas: Nomad knows a replica, and keeps its output, until it collects it.
func (r *replicas) Ended(ctx context.Context, id string) (serving.ModelID, error) {
	version, err := r.fleet.VersionOf(ctx, id)
	return version, replicaError(err)
}

// Logs implements api.Replicas. How many lines it is depends on how long they are.
func (r *replicas) Logs(ctx context.Context, id string, query api.LogQuery) (io.ReadCloser, error) {
	q := nomadfleet.LogQuery{Bytes: max(int64(query.Lines)*lineBytes, 1), Follow: query.Follow}
	out, failed := q, q
	failed.Stderr = true
	switch query.Stream {
	case "sidecar":
		failed.Task = jobs.Sidecar // its log
		return r.output(ctx, id, failed)
	case "stderr":
		return r.output(ctx, id, failed)
	case "stdout":
		return r.output(ctx, id, out)
	}
	return r.both(ctx, id, out, failed)
}

func (r *replicas) output(ctx context.Context, id string, query nomadfleet.LogQuery) (io.ReadCloser, error) {
	body, err := r.fleet.Logs(ctx, id, query)
	if err != nil {
		return nil, fmt.Errorf("read its output: %w", replicaError(err))
	}
	return body, nil
}

// both reads two outputs as one, line by line as they come.
func (r *replicas) both(ctx context.Context, id string, queries ...nomadfleet.LogQuery) (io.ReadCloser, error) {
	ctx, cancel := context.WithCancel(ctx)
	m := &merged{cancel: cancel}
	m.PipeReader, m.to = io.Pipe()
	for _, q := range queries {
		body, err := r.output(ctx, id, q)
		if err != nil {
			return nil, errors.Join(err, m.Close())
		}
		m.from.Go(func() { m.copyLines(body) })
	}
	go func() { // ends with the copying, which Close ends
		m.from.Wait()
		_ = m.to.Close() // it never fails
	}()
	return m, nil
}

// merged is several outputs read as one.
type merged struct {
	*io.PipeReader
	to     *io.PipeWriter
	cancel context.CancelFunc
	from   sync.WaitGroup
	line   sync.Mutex // while a line is written
}

// Close ends the reading of all outputs.
func (m *merged) Close() error {
	m.cancel()
	err := m.PipeReader.Close()
	m.from.Wait()
	return err
}

func (m *merged) copyLines(body io.ReadCloser) {
	defer body.Close()
	lines := bufio.NewReaderSize(body, maxLine)
	for {
		line, err := lines.ReadSlice('\n')
		if len(line) > 0 {
			m.line.Lock()
			_, gone := m.to.Write(line)
			m.line.Unlock()
			if gone != nil {
				return
			}
		}
		if err != nil && !errors.Is(err, bufio.ErrBufferFull) {
			return // the output ended, or its reader left
		}
	}
}
