package api

import (
	"encoding/base64"
	"net/http"
	"slices"
	"strings"
	"unicode/utf8"
)

const (
	maxPage     = 5000
	defaultPage = 1000
	maxCursor   = 1024 // bytes
)

// page is a part of a list.
type page[T any] struct {
	Items []T    `json:"items"`
	Next  string `json:"next,omitempty"`
}

// cut is which part of a list a request asks for.
type cut struct {
	limit int
	after string // the name that those asked for come after
}

func cutOf(r *http.Request) (c cut, err error) {
	if c.limit, err = number(r, "limit", 1, maxPage, defaultPage); err != nil {
		return cut{}, err
	}
	next, err := text(r, "cursor", maxCursor)
	if err != nil {
		return cut{}, err
	}
	c.after, err = parseCursor(next)
	return c, err
}

// cursor is what asks for the items after one with a name.
func cursor(name string) string { return base64.RawURLEncoding.EncodeToString([]byte(name)) }

func parseCursor(text string) (name string, err error) {
	decoded, err := base64.RawURLEncoding.Strict().DecodeString(text)
	if err != nil || !utf8.Valid(decoded) || strings.ContainsAny(text, "\r\n") {
		return "", invalid("cursor must be the next of the page before; leave it out to begin")
	}
	return string(decoded), nil
}

// pageOf is the part of all, which are sorted by name, that a request asks for, as
// documents.
func pageOf[T, D any](r *http.Request, all []T, name func(T) string, describe func(T) D) (page[D], error) {
	c, err := cutOf(r)
	if err != nil {
		return page[D]{}, err
	}
	first := 0
	if c.after != "" {
		i, found := slices.BinarySearchFunc(all, c.after, func(item T, after string) int { return strings.Compare(name(item), after) })
		if first = i; found {
			first++
		}
	}
	rest := all[first:]
	p := page[D]{Items: make([]D, 0, min(len(rest), c.limit))}
	for _, item := range rest[:min(len(rest), c.limit)] {
		p.Items = append(p.Items, describe(item))
	}
	if len(rest) > c.limit {
		p.Next = cursor(name(rest[c.limit-1]))
	}
	return p, nil
}
