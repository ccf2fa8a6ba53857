package apiclient

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
)

const maxProblemBytes = 64 << 10

// Problem is an answer that says what is wrong, as RFC 9457 has it or as gateways do.
type Problem struct {
	Title  string `json:"title"`
	Status int    `json:"status"`
	Detail string `json:"detail"`
	Code   string `json:"code"`
	Cause  string `json:"cause"` // of a gateway, instead of the detail
}

// Error is the server's own sentence.
func (p *Problem) Error() string {
	for _, said := range []string{p.Detail, p.Cause, p.Title} {
		if said != "" {
			return said
		}
	}
	return fmt.Sprintf("the server answers %d %s", p.Status, http.StatusText(p.Status))
}

// readProblem reads the answer to a request that failed.
func readProblem(status int, body io.Reader) *Problem {
	text, _ := io.ReadAll(io.LimitReader(body, maxProblemBytes)) // what is cut off is not valid JSON, and the status remains
	p := &Problem{}
	if json.Unmarshal(text, p) != nil {
		p = &Problem{}
	}
	p.Status = status
	return p
}

// Away is a server that does not answer, or not in time.
type Away struct {
	Server string
	Next   string // what to do
	Err    error
}

func (a *Away) Error() string {
	text := fmt.Sprintf("%s does not answer: %s", a.Server, reason(a.Err))
	if a.Next != "" {
		text += "; " + a.Next
	}
	return text
}

func (a *Away) Unwrap() error { return a.Err }

// reason is the inmost cause: what wraps it repeats the address.
func reason(err error) string {
	if timeout, ok := errors.AsType[net.Error](err); ok && timeout.Timeout() {
		return "it timed out"
	}
	if op, ok := errors.AsType[*net.OpError](err); ok {
		err = op.Err
	}
	text := err.Error()
	if at := strings.LastIndex(text, `": `); at >= 0 { // net/url: Get "http://…": cause
		text = text[at+3:]
	}
	return strings.TrimPrefix(text, "connect: ")
}
