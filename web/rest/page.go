package rest

import (
	"encoding/base64"
	"net/http"
	"slices"
	"strings"
)

const (
	maxPage     = 5000
	defaultPage = 1000
	maxCursor   = 1024 // bytes
)

// Page is a part of a list.
type Page[T any] struct {
	Items []T    `json:"items"`
	Next  string `json:"next,omitempty"`
}

// Cut is which part of a list a request asks for.
type Cut struct {
	Limit int
	After string // the name that those asked for come after
}

func CutOf(r *http.Request) (c Cut, err error) {
	if c.Limit, err = Number(r, "limit", 1, maxPage, defaultPage); err != nil {
		return Cut{}, err
	}
	next, err := Text(r, "cursor", maxCursor)
	if err != nil {
		return Cut{}, err
	}
	c.After, err = parseCursor(next)
	return c, err
}

// Cursor is what asks for the items after one with a name.
func Cursor(name string) string { return base64.RawURLEncoding.EncodeToString([]byte(name)) }

func parseCursor(text string) (name string, err error) {
	decoded, err := base64.RawURLEncoding.Strict().DecodeString(text)
	if err != nil || strings.ContainsAny(text, "\r\n") {
		return "", Invalid("cursor must be the next of the page before; leave it out for the first page")
	}
	return string(decoded), nil
}

// PageOf is the part of all, which are sorted by name, that a request asks for, as
// documents.
func PageOf[T, D any](r *http.Request, all []T, name func(T) string, describe func(T) D) (Page[D], error) {
	c, err := CutOf(r)
	if err != nil {
		return Page[D]{}, err
	}
	first := 0
	if c.After != "" {
		i, found := slices.BinarySearchFunc(all, c.After, func(item T, after string) int { return strings.Compare(name(item), after) })
		if first = i; found {
			first++
		}
	}
	rest := all[first:]
	p := Page[D]{Items: make([]D, 0, min(len(rest), c.Limit))}
	for _, item := range rest[:min(len(rest), c.Limit)] {
		p.Items = append(p.Items, describe(item))
	}
	if len(rest) > c.Limit {
		p.Next = Cursor(name(rest[c.Limit-1]))
	}
	return p, nil
}
