package nomadfleet

import (
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/hashicorp/nomad/api"

	"github.com/topsail-serving/topsail/serving"
)

// status is the HTTP status of an error of Nomad's API, 0 for other errors.
func status(err error) int {
	if e, ok := errors.AsType[api.UnexpectedResponseError](err); ok {
		return e.StatusCode()
	}
	return 0
}

// said is what Nomad said, without what the client says around it.
func said(err error) string {
	if e, ok := errors.AsType[api.UnexpectedResponseError](err); ok && e.HasBody() {
		return strings.TrimSpace(e.Body())
	}
	return err.Error()
}

// refused names, for an error of a change, what serving calls it. Nomad distinguishes some of them
// only by their text.
func refused(job string, err error) error {
	if err == nil {
		return nil
	}
	var kind error
	text := said(err)
	switch code := status(err); {
	case strings.Contains(text, api.RegisterEnforceIndexErrPrefix), code == http.StatusNotFound:
		kind = serving.ErrJobChanged
	case strings.Contains(text, "active deployment"):
		kind = serving.ErrJobBlocked
	case code == http.StatusForbidden, code == http.StatusTooManyRequests, code == 0, code >= 500:
		return fmt.Errorf("job %s: %w", job, err)
	default:
		kind = serving.ErrJobRefused
	}
	return fmt.Errorf("job %s: %w: %s", job, kind, text)
}

// invalid names, for an error of checking a job, what serving calls it. Nomad answers 500 to a job that it
// cannot prepare, and also to any job while it has no leader.
func invalid(err error) error {
	code, text := status(err), said(err)
	if code == http.StatusBadRequest || code == http.StatusInternalServerError && strings.Contains(text, "error in job mutator") {
		return fmt.Errorf("%w: %s", serving.ErrJobRefused, text)
	}
	return err
}
