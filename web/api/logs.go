package api

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"net/http"
	"regexp"
	"slices"
	"time"

	"github.com/topsail-serving/topsail/serving"
	"github.com/topsail-serving/topsail/web/auth"
	"github.com/topsail-serving/topsail/web/rest"
)

const (
	maxLines     = 10_000
	defaultLines = 100
	logsWithin   = time.Minute // for what is not followed
	logPiece     = 32 << 10    // bytes
	maxLine      = 64 << 10    // bytes of a line of a stage; longer ones are cut
	maxKept      = 4 << 20     // bytes of a stage's last lines, which are kept until the output has been read
)

// readLogs passes a replica's output on as it comes.
func (l *live) readLogs(w http.ResponseWriter, r *http.Request) error {
	query, stage, err := logQuery(r)
	if err != nil {
		return err
	}
	one, err := l.replica(r)
	if errors.Is(err, ErrNoReplica) {
		one, err = l.endedReplica(r)
		query.Follow = false // nothing comes from it any more
	}
	if err != nil {
		return err
	}
	select {
	case l.readers <- struct{}{}:
		defer func() { <-l.readers }()
	default:
		return rest.Later(http.StatusServiceUnavailable, "too_many", fmt.Sprintf("%d clients already read logs; try again later", maxReaders))
	}
	ctx, cancel := l.reading(r, query.Follow)
	defer cancel()
	wanted := query.Lines
	if stage != "" && !query.Follow {
		query.Lines = maxLines // among which those of the stage are
	}
	logs, err := l.Replicas.Logs(ctx, one.ID, query)
	if err != nil {
		return err
	}
	defer logs.Close()
	out := newStream(w, "text/plain; charset=utf-8")
	switch {
	case r.Method == http.MethodHead:
	case stage == "":
		out.pass(logs)
	case query.Follow:
		out.passLines(linesOf(stage, logs))
	default:
		out.passLines(lastOf(linesOf(stage, logs), wanted))
	}
	return nil
}

// logQuery reads which lines the client wants, and of which stage's workers; of all output where stage is empty.
func logQuery(r *http.Request) (query LogQuery, stage string, err error) {
	if query.Lines, err = rest.Number(r, "lines", 0, maxLines, defaultLines); err != nil {
		return LogQuery{}, "", err
	}
	if query.Follow, err = rest.Flag(r, "follow"); err != nil {
		return LogQuery{}, "", err
	}
	if query.Stream, err = rest.Choice(r, "stream", "all", []string{"all", "stdout", "stderr", "sidecar"}); err != nil {
		return LogQuery{}, "", err
	}
	stage, given, err := rest.Parameter(r, "stage")
	switch {
	case err != nil, !given:
		return query, "", err
	case !serving.IsStageName(stage):
		return LogQuery{}, "", rest.Invalid("stage must be the name of a stage, not %.40q", stage)
	case query.Stream == "sidecar":
		return LogQuery{}, "", rest.Invalid("stage is for the output of the container, and stream is sidecar: leave one of them out")
	}
	return query, stage, nil
}

// endedReplica is the one that the path names, no longer listed, if its output may still be kept and the caller sees
// its model.
func (l *live) endedReplica(r *http.Request) (Replica, error) {
	ctx, cancel := context.WithTimeout(r.Context(), within)
	defer cancel()
	id := r.PathValue("replica")
	version, err := l.Replicas.Ended(ctx, id)
	if err == nil && !l.view(r).seesModel(version.Model) {
		err = ErrNoReplica
	}
	return Replica{ID: id, Model: version.Model, Version: version.Version}, err
}

// reading is for how long logs are read: until the client leaves or may no longer, or we stop.
func (l *live) reading(r *http.Request, follow bool) (context.Context, context.CancelFunc) {
	if !follow || r.Method == http.MethodHead {
		return context.WithTimeout(r.Context(), logsWithin)
	}
	ctx, cancel := context.WithTimeout(r.Context(), streamLasts)
	caller := auth.Of(ctx)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		check := time.NewTicker(checkEvery)
		defer check.Stop()
		for l.holds(caller) {
			select {
			case <-check.C:
			case <-l.over:
				cancel()
				return
			case <-ctx.Done():
				return
			}
		}
		cancel()
	}()
	return ctx, func() { cancel(); <-ended }
}

// pass sends what comes as it comes, to the end. The answer has begun, so that nothing
// can be said any more about what goes wrong.
func (s *stream) pass(from io.Reader) {
	if s.control.Flush() != nil {
		return
	}
	piece := make([]byte, logPiece)
	for {
		n, err := from.Read(piece)
		if n > 0 && s.send(piece[:n]) != nil || err != nil {
			return
		}
	}
}

// passLines sends lines as they come, as pass does.
func (s *stream) passLines(lines iter.Seq[[]byte]) {
	if s.control.Flush() != nil {
		return
	}
	for line := range lines {
		if s.send(line) != nil {
			return
		}
	}
}

// linesOf are the lines that a stage's workers wrote: their supervisor puts the names of the stage and the worker
// before each. Local mode puts the time before that.
func linesOf(stage string, logs io.Reader) iter.Seq[[]byte] {
	begin := regexp.MustCompile(`^(\d{4}-\d\d-\d\dT[0-9:.]+Z )?\[` + regexp.QuoteMeta(stage) + `/\d+\] `)
	from := bufio.NewReaderSize(logs, maxLine)
	return func(yield func([]byte) bool) {
		for {
			line, cut, err := from.ReadLine()
			if begin.Match(line) && !yield(slices.Concat(line, []byte{'\n'})) {
				return
			}
			for cut && err == nil {
				_, cut, err = from.ReadLine()
			}
			if err != nil {
				return // the output ended, or the client left
			}
		}
	}
}

// lastOf are the last n of lines that end, or as many of them as have maxKept bytes.
func lastOf(lines iter.Seq[[]byte], n int) iter.Seq[[]byte] {
	var kept [][]byte
	size := 0
	for line := range lines {
		kept, size = append(kept, line), size+len(line)
		for len(kept) > n || size > maxKept {
			kept, size = kept[1:], size-len(kept[0])
		}
	}
	return slices.Values(kept)
}
