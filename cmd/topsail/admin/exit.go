package admin

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"

	"github.com/topsail-serving/topsail/cmd/topsail/admin/screen"
	"github.com/topsail-serving/topsail/internal/apiclient"
)

// What the program exits with.
const (
	exitFailed  = 1
	exitUsage   = 2 // or a dry run that found changes
	exitUnknown = 3 // there is no such object
	exitRefused = 4 // the server does not allow that with this key
	exitAway    = 5 // the server does not answer, or not in time
)

// usageError is a command that was written wrong.
type usageError struct{ error }

func (u usageError) Unwrap() error { return u.error }

func misused(format string, args ...any) error { return usageError{fmt.Errorf(format, args...)} }

// pending is a dry run that found changes. That is not a failure, and prints no error.
type pending struct{}

func (pending) Error() string { return "there are changes" }

// Exit writes what a command failed with, and returns what the program exits with.
func Exit(err error, stderr io.Writer) int {
	if _, silent := errors.AsType[pending](err); err != nil && !silent {
		fmt.Fprintln(stderr, "topsail:", screen.CleanLines(said(err)))
	}
	return status(err)
}

// said is an error with the next step, where the server did not know it.
func said(err error) string {
	if errors.Is(err, context.Canceled) {
		return "interrupted"
	}
	if p, ok := errors.AsType[*apiclient.Problem](err); ok && p.Status == http.StatusUnauthorized {
		return err.Error() + "; name the file of a key with --key-file, or set TOPSAIL_API_KEY_FILE"
	}
	return err.Error()
}

func status(err error) int {
	if err == nil {
		return 0
	}
	if _, ok := errors.AsType[pending](err); ok {
		return exitUsage
	}
	if _, ok := errors.AsType[usageError](err); ok {
		return exitUsage
	}
	if _, ok := errors.AsType[*apiclient.Away](err); ok || errors.Is(err, context.DeadlineExceeded) {
		return exitAway
	}
	if p, ok := errors.AsType[*apiclient.Problem](err); ok {
		switch p.Status {
		case http.StatusNotFound:
			return exitUnknown
		case http.StatusUnauthorized, http.StatusForbidden:
			return exitRefused
		case http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
			return exitAway
		}
	}
	return exitFailed
}
