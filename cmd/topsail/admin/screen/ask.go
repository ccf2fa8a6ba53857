package screen

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
)

const maxReply = 1 << 10

// ErrNoTerminal is a question where there is no terminal.
var ErrNoTerminal = errors.New("cannot ask for confirmation without a terminal: pass --yes to go ahead")

// Ask asks a question that is answered by yes or no, and takes anything but yes for no.
func (s *Screen) Ask(ctx context.Context, question string) (bool, error) {
	if !s.Asks {
		return false, ErrNoTerminal
	}
	fmt.Fprintf(s.Err, "%s [y/N] ", question)
	type reply struct {
		text string
		err  error
	}
	said := make(chan reply, 1)
	// A read from a terminal cannot be interrupted; the process ends before it.
	go func() {
		text, err := bufio.NewReader(io.LimitReader(s.In, maxReply)).ReadString('\n')
		said <- reply{text, err}
	}()
	select {
	case <-ctx.Done():
		fmt.Fprintln(s.Err)
		return false, ctx.Err()
	case r := <-said:
		if r.err != nil && r.text == "" {
			fmt.Fprintln(s.Err)
			return false, nil
		}
		word := strings.ToLower(strings.TrimSpace(r.text))
		return word == "y" || word == "yes", nil
	}
}
