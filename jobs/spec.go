package jobs

import (
	"bytes"
	"embed"
	"errors"
	"fmt"
	"strings"
	"text/template"
	"time"
	"unicode/utf8"

	"github.com/topsail-serving/topsail/serving"
)

// Generation is the generation of the templates. It grows with every change of
// them that should reach replicas that run.
const Generation = 1

// Spec is what the job of one version is made from.
type Spec struct {
	Version  *serving.Version
	Count    int           // replicas
	SLO      time.Duration // the longest of the apps that use the version
	Rolling  bool          // replicas that run and differ are replaced by healthy ones, or Nomad goes back to them; else all at once
	Settings Settings
}

//go:embed *.hcl.tmpl
var files embed.FS

var templates = template.Must(template.New("").Funcs(template.FuncMap{"q": quote}).ParseFS(files, "*.hcl.tmpl"))

// Render is the job as HCL. It fails for a version that no job can run.
func Render(s Spec) (string, error) {
	if err := errors.Join(s.Settings.Check(), checkVersion(s.Version, s.Settings)); err != nil {
		return "", err
	}
	spec, err := Hash(s)
	if err != nil {
		return "", err
	}
	return render(s, spec)
}

// Hash tells what makes another replica from what does not, which are the count, the
// SLO, the time to end and how to roll out. It is in the job's meta as topsail_spec.
func Hash(s Spec) (string, error) {
	s.Settings.KillTimeout = 0
	text, err := render(Spec{Version: s.Version, Settings: s.Settings}, "")
	return hash(text), err
}

func render(s Spec, spec string) (string, error) {
	var b bytes.Buffer
	if err := templates.ExecuteTemplate(&b, "job.hcl.tmpl", newJob(s, spec)); err != nil {
		return "", fmt.Errorf("render the job of %v: %w", s.Version.ModelID, err)
	}
	if !utf8.Valid(b.Bytes()) {
		return "", fmt.Errorf("the job of %v holds text that is not UTF-8", s.Version.ModelID)
	}
	return b.String(), nil
}

// checkVersion says why no job can run a version, or nil.
func checkVersion(v *serving.Version, s Settings) error {
	c := v.Container
	var errs []error
	if v.HostedBy != "" {
		errs = append(errs, fmt.Errorf("the replicas of model %q hold it", v.HostedBy))
	}
	if v.Service != nil {
		errs = append(errs, errors.New("it is a service that others run"))
	}
	errs = append(errs, c.Check(), checkBundle(v, s))
	if c.Driver == "" && s.Driver == "docker" && c.Image == "" && c.Addr == "" && c.Bundle == "" {
		errs = append(errs, errors.New("this cluster's driver is \"docker\": give the version an image or another driver"))
	}
	for name := range c.Env {
		errs = append(errs, checkVariable(name))
	}
	for name, item := range c.Secrets {
		if !safeName.MatchString(name) || !safeName.MatchString(item) {
			errs = append(errs, fmt.Errorf("secret %q from item %q: use letters, digits and '_' only, beginning with a letter or '_'", name, item))
		}
	}
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("model version %v: %w", v.ModelID, err)
	}
	return nil
}

// checkVariable says why name cannot name an environment variable, or nil.
func checkVariable(name string) error {
	if name == "" || strings.ContainsAny(name, "=\x00") {
		return fmt.Errorf("environment variable %q: a name is not empty and has no '='", name)
	}
	return nil
}
