package serving

import (
	"cmp"
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// StateKey names one selection state.
type StateKey struct {
	App     string
	Kind    string // of the policy: another kind has states of its own
	User    string // empty: the app's, with which new users begin
	Context string // empty: of no context
}

// MaxState bounds a selection state as it is stored, in bytes.
const MaxState = 8 << 20

// ErrStateConflict says that a selection state has changed since it was read.
var ErrStateConflict = errors.New("the selection state has changed in the meantime")

// Compare orders keys by app, kind, user and context.
func (k StateKey) Compare(other StateKey) int {
	return cmp.Or(strings.Compare(k.App, other.App), strings.Compare(k.Kind, other.Kind),
		strings.Compare(k.User, other.User), strings.Compare(k.Context, other.Context))
}

// String is the key in a form that people can read: its four parts, quoted. Two keys
// never share one, whatever bytes are in them.
func (k StateKey) String() string {
	b := strconv.AppendQuote(nil, k.App)
	for _, part := range []string{k.Kind, k.User, k.Context} {
		b = strconv.AppendQuote(append(b, ' '), part)
	}
	return string(b)
}

// ParseStateKey reads what String wrote.
func ParseStateKey(text string) (StateKey, error) {
	var k StateKey
	rest := " " + text
	for _, part := range []*string{&k.App, &k.Kind, &k.User, &k.Context} {
		quoted, err := strconv.QuotedPrefix(strings.TrimPrefix(rest, " "))
		if err != nil {
			return StateKey{}, fmt.Errorf("%q is not a state key: it needs four quoted parts", text)
		}
		*part, _ = strconv.Unquote(quoted) // QuotedPrefix has found it good
		rest = strings.TrimPrefix(rest, " ")[len(quoted):]
	}
	if k.String() != text {
		return StateKey{}, fmt.Errorf("%q is not a state key: it is not in its canonical form", text)
	}
	return k, nil
}

// CheckState says why a text cannot be stored as a selection state, or nil.
func CheckState(text []byte) error {
	if len(text) > MaxState {
		return fmt.Errorf("a selection state of %d bytes is larger than %d: use fewer models or features", len(text), MaxState)
	}
	return nil
}
