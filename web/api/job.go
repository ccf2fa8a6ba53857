package api

import (
	"context"
	"net/http"
	"regexp"

	"github.com/topsail-serving/topsail/serving/catalog"
	"github.com/topsail-serving/topsail/web/rest"
)

func (a *api) getJob(w http.ResponseWriter, r *http.Request) error {
	v := a.view(r)
	version, err := v.scope.version(v.cat, versionOf(r))
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(r.Context(), within)
	defer cancel()
	job, err := a.Job(ctx, version.ModelID)
	if err != nil {
		return err
	}
	if !v.open() {
		job.Text = withoutSecrets(job.Text)
	}
	return rest.Respond(w, http.StatusOK, job)
}

var (
	// variables are the variables of a task, line by line, as jobs are rendered.
	variables = regexp.MustCompile(`(?m)^ *env = \{\n(?: *".*" = ".*"\n)*`)
	variable  = regexp.MustCompile(`(?m)" = ".*"$`)
	// address is a URL up to a space or the end of a text in HCL.
	address = regexp.MustCompile(`[a-z0-9+.-]+://[^\s"\\]+`)
)

// withoutSecrets is a job's text without the values of variables and what is secret of
// URLs.
func withoutSecrets(text string) string {
	text = variables.ReplaceAllStringFunc(text, func(block string) string {
		return variable.ReplaceAllLiteralString(block, `" = "`+catalog.Hidden+`"`)
	})
	return address.ReplaceAllStringFunc(text, catalog.RedactURL)
}
