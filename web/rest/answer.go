package rest

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"

	"github.com/topsail-serving/topsail/web/inflight"
)

// Respond answers with a document.
func Respond(w http.ResponseWriter, status int, document any) error {
	text, err := json.Marshal(document)
	if err != nil {
		return fmt.Errorf("make the answer: %w", err)
	}
	if err := inflight.Answer(w, len(text)); err != nil {
		return err
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = w.Write(append(text, '\n')) // a client that left needs no answer
	return nil
}

// Show answers with a document and its ETag, or that the client has it already.
func Show(w http.ResponseWriter, r *http.Request, status int, document any, etag string) error {
	w.Header().Set("ETag", etag)
	if r.Method == http.MethodGet || r.Method == http.MethodHead {
		have, err := parseTags(r.Header.Values("If-None-Match"), "If-None-Match")
		if err != nil {
			return err
		}
		if have.any || slices.Contains(have.tags, etag) || slices.Contains(have.weak, etag) {
			w.WriteHeader(http.StatusNotModified)
			return nil
		}
	}
	return Respond(w, status, document)
}

// Created answers with a document that is new, and where it is.
func Created(w http.ResponseWriter, r *http.Request, path string, document any, etag string) error {
	w.Header().Set("Location", path)
	return Show(w, r, http.StatusCreated, document, etag)
}

// ETag is the version of a document.
func ETag(document any) string {
	text, _ := json.Marshal(document) // respond says what is wrong with it
	hash := sha256.Sum256(text)
	return `"` + base64.RawURLEncoding.EncodeToString(hash[:12]) + `"`
}
