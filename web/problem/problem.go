// Package problem writes errors as RFC 9457 has them.
package problem

import (
	"encoding/json"
	"maps"
	"net/http"
)

// Problem is an error as clients get it.
type Problem struct {
	Type   string `json:"type"`
	Title  string `json:"title"`
	Status int    `json:"status"`
	Detail string `json:"detail"`         // what is wrong and what to do
	Code   string `json:"code,omitempty"` // a word for programs

	Header http.Header `json:"-"` // goes with the answer
}

// New makes the problem of a status, with a code for programs and a detail for people.
func New(status int, code, detail string) *Problem {
	return &Problem{Type: "about:blank", Title: http.StatusText(status), Status: status, Detail: detail, Code: code}
}

func (p *Problem) Error() string { return p.Detail }

// Write answers with the problem.
func (p *Problem) Write(w http.ResponseWriter) {
	text, _ := json.Marshal(p) // texts and a number always marshal
	h := w.Header()
	maps.Copy(h, p.Header)
	h.Set("Content-Type", "application/problem+json")
	h.Set("Cache-Control", "no-store")
	h.Set("X-Content-Type-Options", "nosniff")
	w.WriteHeader(p.Status)
	_, _ = w.Write(append(text, '\n')) // a client that left needs no answer
}

// Write answers with an error; detail says what to do.
func Write(w http.ResponseWriter, status int, title, detail string) {
	(&Problem{Type: "about:blank", Title: title, Status: status, Detail: detail}).Write(w)
}
