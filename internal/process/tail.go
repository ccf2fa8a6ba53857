//go:build unix

package process

import "sync"

const tailLines = 200

// tail remembers the last lines. It has its own lock so that a reader never
// waits for a log handler.
type tail struct {
	mu    sync.Mutex // guards what follows
	lines [tailLines]string
	next  int // lines ever added; the next one goes to next % tailLines
	began int // what next was when the present run began
}

// begin begins a run.
func (t *tail) begin() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.began = t.next
}

// run returns a copy of the last lines of the present run, or of the last one, oldest first.
func (t *tail) run() []string {
	t.mu.Lock()
	n := t.next - t.began
	t.mu.Unlock()
	return t.last(n)
}

func (t *tail) add(line string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.lines[t.next%tailLines] = line
	t.next++
}

// last returns a copy of up to n of the last lines, oldest first.
func (t *tail) last(n int) []string {
	t.mu.Lock()
	defer t.mu.Unlock()
	n = max(0, min(n, t.next, tailLines))
	last := make([]string, 0, n)
	for i := t.next - n; i < t.next; i++ {
		last = append(last, t.lines[i%tailLines])
	}
	return last
}
