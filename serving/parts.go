package serving

import "context"

// Parts is an answer that comes in parts. One goroutine at a time uses it, and closes it.
type Parts interface {
	// Next is the next part, which is shared and immutable, or io.EOF at the end of the answer. Other
	// errors are those of a context that has ended.
	Next(ctx context.Context) (*Output, error)
	// Answer says, after io.EOF, how the answer ended: with the whole output, which is null where that
	// is too large to be collected, or with a default. A default after parts says why they were cut. Its
	// query id is known from the beginning.
	Answer() *Prediction
	// Close stops the answer, unless it has ended or equal queries wait for it.
	Close()
}
