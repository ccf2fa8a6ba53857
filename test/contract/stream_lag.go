package contract

import (
	"fmt"

	"github.com/topsail-serving/topsail/test/require"
	"github.com/topsail-serving/topsail/test/wait"
)

// lag counts what is not committed, by any member, and fails while the broker cannot be reached.
func (s *streams) lag() {
	s.write(10)
	member, wire := s.join("a")
	s.awaitLag(member, 10)
	records := s.poll(member, 4)
	s.awaitLag(member, 10)
	require.NoError(s, s.commit(s.Context(), member, records, s.echo(records)))
	s.awaitLag(member, 10-int64(len(records)))
	s.write(5)
	s.awaitLag(member, 15-int64(len(records)))
	s.finish(member)
	s.awaitLag(member, 0)
	wire.Cut()
	if _, err := member.Lag(s.Context()); err == nil {
		s.Error("there is a lag although the broker cannot be reached")
	}
}

// awaitLag waits until the lag is so much, and the broker is reached.
func (s *streams) awaitLag(member StreamConsumer, want int64) {
	s.Helper()
	var records int64
	var err error
	wait.Until(s, fmt.Sprintf("a lag of %d", want), func() bool { records, err = member.Lag(s.Context()); return err == nil && records == want },
		func() string { return fmt.Sprintf("a lag of %d, error %v", records, err) })
}
