//go:build unix

package process

import (
	"bytes"
	"fmt"
)

// maxLine is how many bytes of a line are kept.
const maxLine = 16 << 10

// lineWriter passes each line written to it to emit, without its line break. It
// holds maxLine bytes at most, whatever is written.
type lineWriter struct {
	emit func(line []byte) // must not keep line
	kept []byte
	cut  int // bytes of this line that were not kept
}

func (w *lineWriter) Write(p []byte) (int, error) {
	n := len(p)
	for {
		part, rest, found := bytes.Cut(p, []byte("\n"))
		keep := min(len(part), maxLine-len(w.kept))
		w.kept = append(w.kept, part[:keep]...)
		w.cut += len(part) - keep
		if !found {
			return n, nil
		}
		w.flush()
		p = rest
	}
}

// flushRest ends a last line that has no line break.
func (w *lineWriter) flushRest() {
	if len(w.kept) > 0 {
		w.flush()
	}
}

func (w *lineWriter) flush() {
	line := bytes.TrimSuffix(w.kept, []byte("\r"))
	if w.cut > 0 {
		line = fmt.Appendf(line, " [%d bytes cut]", w.cut)
	}
	w.emit(line)
	w.kept, w.cut = w.kept[:0], 0
}
