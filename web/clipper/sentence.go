package clipper

import "fmt"

// clippers is what Clipper says of a request that it cannot read, to the letter: clients
// compare it.
type clippers string

func (c clippers) Error() string { return string(c) }

func sentence(format string, args ...any) error { return clippers(fmt.Sprintf(format, args...)) }
