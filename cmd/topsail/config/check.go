package config

import (
	"errors"
	"regexp"
	"slices"
	"strings"
	"unicode"
)

var quoted = regexp.MustCompile(`"(\\.|[^"\\])*"`)

// checked reports what a check of the domain found wrong with the table at
// path, each part at the key that it is about. prefix is what the messages
// begin with before they name a key.
func (l *loader) checked(path, prefix string, err error) {
	for _, err := range parts(err) {
		key := l.blame(path, strings.TrimPrefix(err.Error(), prefix))
		// A value that did not decode has been reported, and is zero by now.
		if key == path || !l.reported(key) {
			l.wrong(key, "%w", err)
		}
	}
}

// parts splits what errors.Join made; nil has none.
func parts(err error) []error {
	joined, ok := errors.AsType[interface {
		error
		Unwrap() []error
	}](err)
	if !ok {
		return nil
	}
	return joined.Unwrap()
}

// blame finds the key that a message is about: the checks call keys by their
// names, "batch max_size" for max_size in batch. It is the table itself when
// the message names no key that is in the file.
func (l *loader) blame(path, message string) string {
	words := strings.FieldsFunc(quoted.ReplaceAllString(message, ""), func(r rune) bool {
		return r != '_' && !unicode.IsLetter(r)
	})
	for _, word := range words {
		if _, written := l.file.offsets[path+"."+word]; written {
			path += "." + word
		}
	}
	return path
}

func (l *loader) reported(path string) bool {
	return slices.ContainsFunc(l.problems, func(p problem) bool { return p.path == path })
}
