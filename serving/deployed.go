package serving

import (
	"errors"
	"regexp"
	"time"
)

// Deployed says where a version comes from: what made it the generation that it is.
type Deployed struct {
	By     string    `json:"by"`               // as the audit log names the author
	At     time.Time `json:"at"`               //
	Client string    `json:"client,omitempty"` // the program that asked for it, as it names itself; empty: none did, or it does not
	Commit string    `json:"commit,omitempty"` // of the source, as the client says; empty: not said
}

var commit = regexp.MustCompile(`^[0-9A-Za-z][0-9A-Za-z._+/-]{0,127}$`)

// Check says what is wrong with what is asked for, or nil.
func (d *Deployed) Check() error {
	if d != nil && d.Commit != "" && !commit.MatchString(d.Commit) {
		return errors.New("commit must name a commit: at most 128 letters, digits and ._+/-, such as what git rev-parse HEAD prints")
	}
	return nil
}
