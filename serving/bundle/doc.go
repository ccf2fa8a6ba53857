// Package bundle reads bundles: a model with all that a node needs to run it, in one zip
// archive whose manifest.json says what runs it, what that needs, and which files there
// are. docs/bundles.md describes the format, of which this is version 1.
//
// A bundle's name is its digest, "sha256:" and the SHA-256 of the archive's bytes, so one
// that has a name never changes.
package bundle
