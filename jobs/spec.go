package jobs

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/hashicorp/nomad/api"

	"github.com/topsail-serving/topsail/serving"
)

// Generation is the generation of how jobs are made. It grows with every change of that which should reach replicas
// that run, which are then replaced version by version.
const Generation = 2

// Spec is what the job of one version is made from.
type Spec struct {
	Version  *serving.Version
	Count    int           // replicas
	SLO      time.Duration // the longest of the apps that use the version
	Rolling  bool          // replicas that run and differ are replaced by healthy ones, or Nomad goes back to them; else all at once
	Settings Settings
}

// Make is the job. It fails for a version that no job can run.
func Make(s Spec) (*api.Job, error) {
	if err := errors.Join(s.Settings.Check(), checkVersion(s.Version, s.Settings)); err != nil {
		return nil, err
	}
	spec, err := Hash(s)
	if err != nil {
		return nil, err
	}
	return newJob(s, spec), nil
}

// Hash tells what makes another replica from what does not, which are the count, the
// SLO, the time to end and how to roll out. It is in the job's meta as topsail_spec.
func Hash(s Spec) (string, error) {
	s.Settings.KillTimeout = 0
	job := newJob(Spec{Version: s.Version, Settings: s.Settings}, "")
	if !isUTF8(job) {
		return "", fmt.Errorf("the job of %v holds text that is not UTF-8", s.Version.ModelID)
	}
	return hash(Text(job)), nil
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
	if c.Driver == "" && s.Driver == docker && c.Image == "" && c.Addr == "" && c.Bundle == "" {
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
