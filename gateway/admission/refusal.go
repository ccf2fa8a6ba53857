package admission

import (
	"errors"
	"time"
)

// Refusal is why a request is not answered. Its text is for clients.
type Refusal struct {
	Reason Reason
	Cause  string
	Wait   time.Duration // until it may be sent again; 0: that would not help
}

func (r *Refusal) Error() string { return r.Cause }

// Refused is why err refuses a request; ok is false if it does not.
func Refused(err error) (r *Refusal, ok bool) { return errors.AsType[*Refusal](err) }
