package api

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/topsail-serving/topsail/serving"
	"github.com/topsail-serving/topsail/serving/catalog"
	"github.com/topsail-serving/topsail/web/rest"
)

// Version is a model version as the API shows and takes it. What its own fields say is shown, and not
// taken.
type Version struct {
	serving.Version
	Current bool     `json:"current"`
	Serving bool     `json:"serving"`
	UsedBy  []string `json:"used_by,omitzero"`
	Example string   `json:"example,omitempty"`

	Performance *Performance `json:"performance,omitempty"` // where versions are asked for
}

// Performance is what the replicas of a version did, those that are gone included, since
// the first of them began to serve it. Times are in microseconds; nil is unknown.
type Performance struct {
	Since      time.Time `json:"since"`
	Answers    uint64    `json:"answers"`
	Errors     *float64  `json:"errors,omitempty"`
	Batches    uint64    `json:"batches"`
	BatchMean  *float64  `json:"batch_mean,omitempty"`
	P50        *float64  `json:"p50_micros,omitempty"`
	P99        *float64  `json:"p99_micros,omitempty"`
	Throughput *float64  `json:"throughput,omitempty"`
}

// version describes a version.
func (v view) version(version *serving.Version) Version {
	return v.asItIs(v.shown(version))
}

// shown is a version without what is hidden from the caller.
func (v view) shown(version *serving.Version) *serving.Version {
	if v.open() {
		return version
	}
	return catalog.Redact(version)
}

func (v view) asItIs(version *serving.Version) Version {
	m := v.cat.Models[version.Model]
	return Version{
		Version: *version, Current: m.Current == version.ModelID.Version, Serving: m.Serving == version.ModelID.Version, UsedBy: v.usedBy(version.ModelID),
	}
}

// tagOf is the version of a version: it does not tell what is hidden.
func (v view) tagOf(version *serving.Version) string {
	return rest.ETag(v.asItIs(catalog.Redact(version)))
}

// usedBy are the apps, of those that the caller sees, whose queries a version may get:
// it is the current or the serving one of a model that they ask, or their policy names it.
func (v view) usedBy(id serving.ModelID) []string {
	m, apps := v.cat.Models[id.Model], []string{}
	asked := m.Current == id.Version || m.Serving == id.Version
	for _, name := range v.appsAsking(id.Model) {
		if asked || slices.Contains(v.cat.Apps[name].Pins(), id) {
			apps = append(apps, name)
		}
	}
	return apps
}

// read is the version that the document describes, as long as it is right in itself.
func (doc Version) read() (*serving.Version, error) {
	v := doc.Version
	v.Generation, v.Pin, v.Origin, v.Deployed = "", nil, "", nil
	if v.Host != nil && len(v.Command) == 0 && v.Bundle == "" && v.Image == "" {
		v.Command = serving.HostCommand()
	}
	return &v, cmp.Or(doc.checkEnv(), doc.checkHidden())
}

func (doc Version) checkEnv() error {
	for _, name := range slices.Sorted(maps.Keys(doc.Env)) {
		if name == "" || strings.ContainsAny(name, "=\x00") || strings.Contains(doc.Env[name], "\x00") {
			return rest.Invalid("env: %q is not a valid variable: its name must not be empty or contain '=', and name and value must not contain NUL", name)
		}
	}
	return nil
}

// checkHidden refuses what was hidden from a caller that may not read it, and is sent back.
func (doc Version) checkHidden() error {
	for _, name := range slices.Sorted(maps.Keys(doc.Env)) {
		if doc.Env[name] == catalog.Hidden {
			return notShown(fmt.Sprintf("env: the value of %q", name))
		}
	}
	if strings.Contains(doc.BundleURL, catalog.Hidden) {
		return notShown("a part of bundle_url")
	}
	for i, a := range doc.Artifacts {
		if strings.Contains(a.Source, catalog.Hidden) {
			return notShown(fmt.Sprintf("a part of artifacts[%d].source", i))
		}
	}
	return nil
}

func notShown(what string) error {
	return rest.Invalid("%s is %q, which is the placeholder of a hidden value; give the value itself", what, catalog.Hidden)
}

// CheckRunnable says why a version cannot run in a mode, or nil: Docker images need a
// cluster. Local mode runs the command of a version that has both.
func CheckRunnable(mode string, v *serving.Version) error {
	if c := v.Container; mode == "local" && c.Image != "" && len(c.Command) == 0 && c.Addr == "" {
		return fmt.Errorf("version %q of model %q is the Docker image %q, and local mode cannot run images: give a bundle or a command, or deploy it to a cluster",
			v.Version, v.Model, c.Image)
	}
	return nil
}

func (a *api) getJob(w http.ResponseWriter, r *http.Request) error {
	v := a.view(r)
	version, err := v.scope.version(v.cat, versionOf(r))
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(r.Context(), within)
	defer cancel()
	job, err := a.Job(ctx, version.ModelID, v.open())
	if err != nil {
		return err
	}
	return rest.Respond(w, http.StatusOK, job)
}
