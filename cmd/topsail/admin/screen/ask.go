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

// ErrNobody is a question where there is no terminal.
var ErrNobody = errors.New("there is no terminal to ask on: preview it with --dry-run, and pass --yes to do it")

// Ask asks a question that is answered by yes or no, and takes anything but yes for no.
func (s *Screen) Ask(ctx context.Context, question string) (bool, error) {
	if !s.Asks {
		return false, ErrNobody
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
