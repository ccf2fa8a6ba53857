package access

import (
	"bytes"
	"crypto/subtle"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"unicode"
)

const redacted = "[secret]"

// Secret is a token or password in a file. It never shows itself in logs and
// prints; the zero value holds none.
type Secret struct{ file *file[[]byte] }

// TokenFile opens a secret: one line, without the space around it. A nil log
// discards.
func TokenFile(path string, log *slog.Logger) (Secret, error) {
	f, err := open(log, parseToken, source{path: path, secret: true})
	if err != nil {
		return Secret{}, err
	}
	return Secret{f}, nil
}

const maxToken = 4096

func parseToken(contents [][]byte) ([]byte, error) {
	token := bytes.TrimSpace(contents[0])
	switch {
	case len(token) == 0:
		return nil, errors.New("it is empty: write the token into it")
	case len(token) > maxToken:
		return nil, fmt.Errorf("the token is longer than %d bytes", maxToken)
	case bytes.ContainsFunc(token, unicode.IsControl):
		return nil, errors.New("it has more than one line, or control characters: it must hold one token")
	}
	return bytes.Clone(token), nil
}

// Bytes is the secret as of at most a second ago, nil if there is none. It must
// not be changed.
func (s Secret) Bytes() []byte {
	if s.file == nil {
		return nil
	}
	return s.file.get()
}

// Fresh is the secret as of now, after a refusal.
func (s Secret) Fresh() []byte {
	if s.file == nil {
		return nil
	}
	return s.file.fresh()
}

// Equal compares in a time that depends on the lengths only. Nothing equals the
// zero value.
func (s Secret) Equal(shown []byte) bool {
	token := s.Bytes()
	return len(token) > 0 && subtle.ConstantTimeCompare(token, shown) == 1
}

// Format implements fmt.Formatter.
func (Secret) Format(to fmt.State, _ rune) { _, _ = io.WriteString(to, redacted) }

// LogValue implements slog.LogValuer.
func (Secret) LogValue() slog.Value { return slog.StringValue(redacted) }

// MarshalText implements encoding.TextMarshaler.
func (Secret) MarshalText() ([]byte, error) { return []byte(redacted), nil }
