//go:build unix

package process

import (
	"fmt"
	"io"
	"log/slog"
	"sync"
	"time"
)

// output takes the lines of a command: into its log file, to slog, and into the
// tail. It lives as long as the Child; the file is open during a run.
type output struct {
	log  *slog.Logger
	tail tail

	mu   sync.Mutex // guards what follows, and keeps lines whole
	file *logFile   // nil when there is none to write to
	rate rateBound
}

// open opens the log file of a run. An empty path means none.
func (o *output) open(path string, limit int64) error {
	if path == "" {
		return nil
	}
	file, err := openLog(path, limit)
	if err != nil {
		return fmt.Errorf("log file: %w", err)
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	o.file = file
	return nil
}

// copyFrom takes all lines of r, until its end or its read deadline.
func (o *output) copyFrom(r io.Reader) {
	lines := &lineWriter{emit: o.line}
	_, _ = io.Copy(lines, r)
	lines.flushRest()
}

func (o *output) line(line []byte) {
	text, now := string(line), time.Now()
	o.tail.add(text)
	o.mu.Lock()
	defer o.mu.Unlock()
	o.writeFile(now, line)
	pass, missed := o.rate.allow(now)
	o.logMissed(missed)
	if pass {
		o.log.Info(text)
	}
}

// writeFile gives the file up for this run at the first error: a full disk must
// neither stop the command nor fill the log with errors. Caller holds mu.
func (o *output) writeFile(now time.Time, line []byte) {
	if o.file == nil {
		return
	}
	if err := o.file.writeLine(now, line); err != nil {
		o.log.Warn("replica's log file cannot be written until its next start", "error", err)
		o.closeFile()
	}
}

func (o *output) logMissed(n int) {
	if n > 0 {
		o.log.Info("lines not shown here: too many in one second", "lines", n)
	}
}

// close ends a run's output.
func (o *output) close() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.logMissed(o.rate.takeMissed())
	o.closeFile()
}

func (o *output) closeFile() {
	if o.file != nil {
		_ = o.file.close()
		o.file = nil
	}
}
