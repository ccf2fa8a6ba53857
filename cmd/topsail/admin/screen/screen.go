package screen

import (
	"io"
	"os"

	"golang.org/x/sys/unix"
)

// Screen is where a command reads and writes.
type Screen struct {
	In       io.Reader
	Out      io.Writer // what was asked for
	Err      io.Writer // progress, questions and what is wrong
	Terminal bool      // Out is a terminal
	Live     bool      // Err is a terminal, where a line can be written again
	Asks     bool      // there is a person to ask: In and Err are terminals
	Colour   bool      // Out takes colours
}

// New looks at what the streams are. Colours are left out where NO_COLOR says so.
func New(in io.Reader, out, err io.Writer, getenv func(string) string) *Screen {
	s := &Screen{In: in, Out: out, Err: err, Terminal: isTerminal(out), Live: isTerminal(err)}
	s.Asks = isTerminal(in) && s.Live
	s.Colour = s.Terminal && getenv("NO_COLOR") == "" && getenv("TERM") != "dumb"
	return s
}

func isTerminal(stream any) bool {
	file, ok := stream.(*os.File)
	if !ok {
		return false
	}
	_, err := unix.IoctlGetTermios(int(file.Fd()), getTermios)
	return err == nil
}

// size of the terminal that Out is; 80 by 24 where it does not say.
func (s *Screen) size() (columns, rows int) {
	if file, ok := s.Out.(*os.File); ok {
		if w, err := unix.IoctlGetWinsize(int(file.Fd()), unix.TIOCGWINSZ); err == nil && w.Col > 0 && w.Row > 0 {
			return int(w.Col), int(w.Row)
		}
	}
	return 80, 24
}
