package screen

import (
	"context"
	"io"
	"os"
	"strings"

	"golang.org/x/sys/unix"
)

// Draw replaces what is on the terminal by these lines, as many as there is room for.
func (s *Screen) Draw(lines []string) error {
	columns, rows := s.size()
	var all strings.Builder
	all.WriteString("\x1b[H")
	for _, line := range lines[:min(len(lines), rows-1)] {
		all.WriteString(s.Paint(Short(line, columns)) + "\x1b[K\n")
	}
	all.WriteString("\x1b[J")
	_, err := io.WriteString(s.Out, all.String())
	return err
}

// Full gives a picture the whole terminal, and one key that ends ctx: q. leave puts the
// terminal back as it was.
func (s *Screen) Full(ctx context.Context) (full context.Context, leave func()) {
	ctx, cancel := context.WithCancel(ctx)
	restore := s.keys(cancel)
	_, _ = io.WriteString(s.Out, "\x1b[?1049h\x1b[?25l") // the other buffer, no cursor
	return ctx, func() {
		_, _ = io.WriteString(s.Out, "\x1b[?25h\x1b[?1049l")
		restore()
		cancel()
	}
}

// keys calls quit when q is pressed. Signals stay: ctrl-C ends the command as ever.
func (s *Screen) keys(quit func()) (restore func()) {
	file, ok := s.In.(*os.File)
	if !ok {
		return func() {}
	}
	fd := int(file.Fd())
	before, err := unix.IoctlGetTermios(fd, getTermios)
	if err != nil {
		return func() {}
	}
	single := *before
	single.Lflag &^= unix.ICANON | unix.ECHO
	single.Cc[unix.VMIN], single.Cc[unix.VTIME] = 1, 0
	if unix.IoctlSetTermios(fd, setTermios, &single) != nil {
		return func() {}
	}
	// A read from a terminal cannot be interrupted; the process ends before it.
	go func() {
		key := make([]byte, 1)
		for {
			if n, err := file.Read(key); err != nil || n > 0 && (key[0] == 'q' || key[0] == 'Q') {
				quit()
				return
			}
		}
	}()
	return func() { _ = unix.IoctlSetTermios(fd, setTermios, before) }
}
