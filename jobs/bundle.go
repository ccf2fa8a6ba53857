package jobs

import (
	"cmp"
	"errors"
	"strings"

	"github.com/topsail-serving/topsail/serving"
)

// bundleFile is where a replica's bundle lies in its task's folder, and managementFile
// where it learns which management processes there are.
const (
	bundleFile     = "local/bundle.zip"
	managementFile = "${NOMAD_TASK_DIR}/management"
)

// runBundle makes t run a bundle: the topsail program unpacks it, sees to its
// environment, and becomes its runtime.
func (t *task) runBundle(s Spec) {
	c, p := s.Version.Container, s.Settings.Program
	source := bundleSource(c, s.Settings)
	t.Command, t.Args = p.Source, []string{"runtime", "--bundle", "${NOMAD_TASK_DIR}/bundle.zip", "--digest", c.Bundle}
	if source == "" {
		t.Args = append([]string{"runtime"}, s.Settings.managementArgs()...)
		t.Args = append(t.Args, "--digest", c.Bundle)
		t.Management = true
	}
	switch {
	case t.Driver == "docker": // the stock image's entrypoint is the program
		t.Image, t.Command = s.Settings.RuntimeImage, ""
		t.keepWork(s.Settings.WorkDir)
	case p.fetched():
		t.Command = "${NOMAD_TASK_DIR}/topsail"
		t.Artifacts = append(t.Artifacts, p.artifact())
	}
	if work := cmp.Or(t.KeptIn, s.Settings.WorkDir); work != "" {
		t.Args = append(t.Args, "--work", work)
	}
	if source != "" {
		t.Artifacts = append(t.Artifacts, artifact{
			Artifact: serving.Artifact{Source: source, Checksum: c.Bundle, Destination: bundleFile}, Mode: "file", Whole: true,
		})
	}
}

// dockerWork is where a container of docker finds what bundles need, unless a folder of
// the node is configured for it, and dockerVolume the volume of the node that keeps it.
const (
	dockerWork   = "/var/cache/topsail"
	dockerVolume = "topsail-bundles"
)

// keepWork keeps environments from one container to the next: those with CUDA take
// minutes to install.
func (t *task) keepWork(dir string) {
	t.KeptIn, t.KeptFrom = cmp.Or(dir, dockerWork), cmp.Or(dir, dockerVolume)
}

// bundleSource is the URL of a bundle where one is configured. Else the node fetches it
// from the management processes that Consul names whenever a replica starts: an address
// that stood in the job would be wrong once they have moved.
func bundleSource(c serving.Container, s Settings) string {
	switch {
	case c.BundleURL != "":
		return c.BundleURL
	case s.BundlesURL != "":
		return strings.TrimRight(s.BundlesURL, "/") + "/api/v1/artifacts/" + c.Bundle + "/content"
	}
	return ""
}

// managementArgs tell topsail runtime where management is, and how to trust it.
func (s Settings) managementArgs() []string {
	args := []string{"--management", managementFile}
	for _, one := range []struct{ flag, value string }{{"--ca-file", s.TLS.CAFile}, {"--server-name", s.TLS.ServerName}} {
		if one.value != "" && !s.Mesh {
			args = append(args, one.flag, one.value)
		}
	}
	return args
}

// FetchesBundles says whether replicas of a version fetch bundles from management.
func FetchesBundles(v *serving.Version) bool {
	return v.Host != nil || v.Container.Bundle != "" && v.Container.BundleURL == ""
}

// artifact is the program as nodes fetch it.
func (p Program) artifact() artifact {
	return artifact{Artifact: serving.Artifact{Source: p.Source, Checksum: p.Checksum, Destination: "local/topsail"}, Mode: "file"}
}

// checkBundle says why no job can run the version's bundle, or nil.
func checkBundle(v *serving.Version, s Settings) error {
	c := v.Container
	switch {
	case c.Bundle == "":
		return nil
	case (c.Driver == "docker" || c.Driver == "" && s.Driver == "docker") && s.RuntimeImage == "":
		return errors.New("with the driver \"docker\" bundles run in an image that has topsail and Python: set jobs.runtime_image, or give the version another driver")
	}
	return nil
}
