// Package problem writes errors as RFC 9457 has them.
package problem

import (
	"encoding/json"
	"net/http"
)

// Write answers with an error; detail says what to do.
func Write(w http.ResponseWriter, status int, title, detail string) {
	text, _ := json.Marshal(struct { // texts and a number always marshal
		Title  string `json:"title"`
		Status int    `json:"status"`
		Detail string `json:"detail"`
	}{title, status, detail})
	h := w.Header()
	h.Set("Content-Type", "application/problem+json")
	h.Set("Cache-Control", "no-store")
	w.WriteHeader(status)
	_, _ = w.Write(append(text, '\n')) // a client that left needs no answer
}
