// Package ui serves the web UI, which the binary carries: what `make build` has built
// from this folder into dist. Without it the program is the same, but for a page that
// says what to do.
package ui

import (
	"embed"
	"io/fs"
	"net/http"
)

// dist holds a placeholder from the start, so that Go builds also where Node is not.
//
//go:embed all:dist
var dist embed.FS

// Handler serves the pages below /ui/.
func Handler() http.Handler {
	built, err := fs.Sub(dist, "dist")
	if err != nil {
		panic(err) // the name is a constant and valid
	}
	return newSite(built)
}
