package api

import (
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/topsail-serving/topsail/serving"
	"github.com/topsail-serving/topsail/serving/catalog"
	"github.com/topsail-serving/topsail/web/problem"
)

// What can be wrong with bundles; the errors of Artifacts wrap these.
var (
	ErrNoBundle       = errors.New("the bundle does not exist")
	ErrBundleInvalid  = errors.New("the bundle is not valid")
	ErrBundleTooLarge = errors.New("the bundle is too large")
	ErrBundlesFull    = errors.New("the store of bundles is full")
	// ErrBackupInvalid says that something is not a backup, or not a whole one.
	ErrBackupInvalid = errors.New("the backup is not valid")
)

// inUse is the problem of what cannot go because something needs it.
func inUse(format string, args ...any) error {
	return problem.New(http.StatusConflict, "in_use", fmt.Sprintf(format, args...))
}

// problemOf is the problem that a client gets for an error. Unknown errors count as an unavailable
// server.
func problemOf(err error) *problem.Problem {
	p, ok := errors.AsType[*problem.Problem](err)
	if ok {
		return p
	}
	text := oneLine(err)
	if large, ok := errors.AsType[*http.MaxBytesError](err); ok {
		return problem.New(http.StatusRequestEntityTooLarge, "too_large", fmt.Sprintf("the body may have at most %d bytes", large.Limit))
	}
	for _, rule := range []struct {
		err    error
		status int
		code   string
	}{
		{catalog.ErrNotFound, http.StatusNotFound, "not_found"},
		{serving.ErrUnknownApp, http.StatusNotFound, "not_found"},
		{ErrNoReplica, http.StatusNotFound, "not_found"},
		{ErrNoBundle, http.StatusNotFound, "not_found"},
		{catalog.ErrExists, http.StatusConflict, "exists"},
		{catalog.ErrConflict, http.StatusConflict, "conflict"},
		{ErrRefused, http.StatusConflict, "refused"},
		{catalog.ErrInvalid, http.StatusBadRequest, "invalid"},
		{ErrBundleInvalid, http.StatusBadRequest, "invalid"},
		{ErrBackupInvalid, http.StatusBadRequest, "invalid"},
		{ErrBundleTooLarge, http.StatusRequestEntityTooLarge, "too_large"},
		{ErrBundlesFull, http.StatusInsufficientStorage, "full"},
	} {
		if errors.Is(err, rule.err) {
			return problem.New(rule.status, rule.code, text)
		}
	}
	p = problem.New(http.StatusServiceUnavailable, "unavailable", "this cannot be done now: "+text+"; try again")
	p.Header = http.Header{"Retry-After": {"1"}}
	return p
}

// oneLine is the text of errors that were joined.
func oneLine(err error) string { return strings.ReplaceAll(err.Error(), "\n", "; ") }
