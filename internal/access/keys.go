package access

import (
	"bytes"
	"crypto/rand"
	"crypto/sha256"
	"errors"
	"fmt"
	"log/slog"
)

const (
	minKey = 16 // bytes, so that keys cannot be guessed
	maxKey = 256
)

// Keys are those that clients may show. A nil *Keys allows every request.
type Keys struct {
	salt salt
	file *file[map[digest]string] // to the names
}

// digest is what is kept of a key. Clients cannot choose one, as they do not know the salt; so the
// time that it takes to find one reveals nothing about the keys.
type digest [sha256.Size]byte

type salt [16]byte

func (s *salt) digest(secret []byte) digest {
	var buffer [len(s) + maxKey]byte
	return sha256.Sum256(append(append(buffer[:0], s[:]...), secret...))
}

// KeysFile opens a file of keys: one per line, as name:key or key alone, beside
// empty lines and lines that begin with #. A nil log discards.
func KeysFile(path string, log *slog.Logger) (*Keys, error) {
	k := &Keys{}
	rand.Read(k.salt[:]) // never fails
	var err error
	k.file, err = open(log, k.salt.parse, source{path: path, secret: true})
	if err != nil {
		return nil, err
	}
	return k, nil
}

// parse reads a file of keys. It never quotes it: what is wrong may be a key.
func (s *salt) parse(contents [][]byte) (map[digest]string, error) {
	keys, lines := map[digest]string{}, map[digest]int{}
	number := 0
	for line := range bytes.Lines(contents[0]) {
		number++
		line = bytes.TrimSpace(line)
		if len(line) == 0 || line[0] == '#' {
			continue
		}
		name, secret, err := parseKey(line, number)
		if err != nil {
			return nil, fmt.Errorf("line %d: %w", number, err)
		}
		d := s.digest(secret)
		if first := lines[d]; first > 0 {
			return nil, fmt.Errorf("line %d repeats the key of line %d: remove one", number, first)
		}
		keys[d], lines[d] = name, number
	}
	if len(keys) == 0 {
		return nil, errors.New("it contains no key: write one per line, such as from openssl rand -hex 32")
	}
	return keys, nil
}

func parseKey(line []byte, number int) (name string, secret []byte, err error) {
	before, secret, named := bytes.Cut(line, []byte(":"))
	if !named {
		before, secret = fmt.Appendf(nil, "line-%d", number), line
	}
	switch {
	case bytes.ContainsFunc(line, unprintable):
		return "", nil, errors.New("it has spaces or non-ASCII characters: write one key, as name:key or key")
	case len(before) == 0:
		return "", nil, errors.New("the name before the colon is missing")
	case len(secret) < minKey || len(secret) > maxKey:
		return "", nil, fmt.Errorf("a key must have %d to %d characters; create one with openssl rand -hex 32", minKey, maxKey)
	}
	return string(before), secret, nil
}

func unprintable(r rune) bool { return r <= ' ' || r > '~' }

// Check takes the values of the headers X-Api-Key and Authorization, where it is
// "Bearer KEY", and says whose key they show. If both do, the first one counts.
func (k *Keys) Check(apiKey, authorization []byte) (name string, ok bool) {
	if k == nil {
		return "", true
	}
	return k.Known(Shown(apiKey, authorization))
}

// Known says whose key this is. A nil *Keys knows none.
func (k *Keys) Known(shown []byte) (name string, ok bool) {
	if k == nil || len(shown) < minKey || len(shown) > maxKey {
		return "", false
	}
	name, ok = k.file.get()[k.salt.digest(shown)]
	return name, ok
}

// bearer is the key of an Authorization header, nil if it is none of this kind.
func bearer(authorization []byte) []byte {
	const scheme = "bearer "
	if len(authorization) < len(scheme) || !bytes.EqualFold(authorization[:len(scheme)], []byte(scheme)) {
		return nil
	}
	return bytes.TrimSpace(authorization[len(scheme):])
}
