package rest

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"unicode/utf8"
)

// Parameter is one of the query; given is false where it is not there.
func Parameter(r *http.Request, name string) (text string, given bool, err error) {
	switch values := r.URL.Query()[name]; len(values) {
	case 0:
		return "", false, nil
	case 1:
		return values[0], true, nil
	}
	return "", false, Invalid("%s is given twice", name)
}

// Flag reads a parameter of the query that is true or false.
func Flag(r *http.Request, name string) (bool, error) {
	text, given, err := Parameter(r, name)
	switch {
	case err != nil:
		return false, err
	case !given, text == "false":
		return false, nil
	case text == "true":
		return true, nil
	}
	return false, Invalid("%s must be true or false, not %.40q", name, text)
}

// Text reads a parameter of the query that may have so many bytes.
func Text(r *http.Request, name string, most int) (string, error) {
	s, _, err := Parameter(r, name)
	if err == nil && (len(s) > most || !utf8.ValidString(s)) {
		err = Invalid("%s may have at most %d bytes of UTF-8", name, most)
	}
	return s, err
}

// Choice reads a parameter of the query that is one of some words.
func Choice(r *http.Request, name, otherwise string, words []string) (string, error) {
	text, given, err := Parameter(r, name)
	switch {
	case err != nil:
		return "", err
	case !given:
		return otherwise, nil
	case slices.Contains(words, text):
		return text, nil
	}
	return "", Invalid("%s must be one of %q", name, words)
}

// Number reads a parameter of the query that is a whole number between two others.
func Number(r *http.Request, name string, least, most, otherwise int) (int, error) {
	text, given, err := Parameter(r, name)
	if err != nil || !given {
		return otherwise, err
	}
	var n int
	if err := json.Unmarshal([]byte(text), &n); err != nil || n < least || n > most {
		return 0, Invalid("%s must be a whole number between %d and %d, not %s", name, least, most, fmt.Sprintf("%.40q", text))
	}
	return n, nil
}
