package api

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"unicode/utf8"
)

// checkQuery refuses a query that would not be understood.
func (route route) checkQuery(r *http.Request) error {
	query, err := url.ParseQuery(r.URL.RawQuery)
	if err != nil {
		return invalid("the query of the URL cannot be read: %v", err)
	}
	if r.Method == http.MethodGet || r.Method == http.MethodHead {
		return nil
	}
	takes := strings.Fields(route.takes)
	for _, name := range slices.Sorted(maps.Keys(query)) {
		if !slices.Contains(takes, name) {
			return invalid("this takes no parameter %.100q; it takes: %s", name, cmp.Or(strings.Join(takes, ", "), "none"))
		}
	}
	return nil
}

// parameter is one of the query; given is false where it is not there.
func parameter(r *http.Request, name string) (text string, given bool, err error) {
	switch values := r.URL.Query()[name]; len(values) {
	case 0:
		return "", false, nil
	case 1:
		return values[0], true, nil
	}
	return "", false, invalid("%s is given twice", name)
}

// flag reads a parameter of the query that is true or false.
func flag(r *http.Request, name string) (bool, error) {
	text, given, err := parameter(r, name)
	switch {
	case err != nil:
		return false, err
	case !given, text == "false":
		return false, nil
	case text == "true":
		return true, nil
	}
	return false, invalid("%s must be true or false, not %.40q", name, text)
}

// text reads a parameter of the query that may have so many bytes.
func text(r *http.Request, name string, most int) (string, error) {
	s, _, err := parameter(r, name)
	if err == nil && (len(s) > most || !utf8.ValidString(s)) {
		err = invalid("%s may have %d bytes of UTF-8", name, most)
	}
	return s, err
}

// choice reads a parameter of the query that is one of some words.
func choice(r *http.Request, name, otherwise string, words []string) (string, error) {
	text, given, err := parameter(r, name)
	switch {
	case err != nil:
		return "", err
	case !given:
		return otherwise, nil
	case slices.Contains(words, text):
		return text, nil
	}
	return "", invalid("%s must be one of %q", name, words)
}

// number reads a parameter of the query that is a whole number between two others.
func number(r *http.Request, name string, least, most, otherwise int) (int, error) {
	text, given, err := parameter(r, name)
	if err != nil || !given {
		return otherwise, err
	}
	var n int
	if err := json.Unmarshal([]byte(text), &n); err != nil || n < least || n > most {
		return 0, invalid("%s must be a whole number between %d and %d, not %s", name, least, most, fmt.Sprintf("%.40q", text))
	}
	return n, nil
}
