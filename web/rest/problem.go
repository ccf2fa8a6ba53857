package rest

import (
	"fmt"
	"net/http"

	"github.com/topsail-serving/topsail/web/problem"
)

// Invalid is the problem of a request that is wrong in itself.
func Invalid(format string, args ...any) error {
	return problem.New(http.StatusBadRequest, "invalid", fmt.Sprintf(format, args...))
}

// Later is the problem of a request that may be sent again in a while.
func Later(status int, code, detail string) error {
	p := problem.New(status, code, detail)
	p.Header = http.Header{"Retry-After": {"1"}}
	return p
}
