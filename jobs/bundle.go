package jobs

import (
	"cmp"
	"errors"
	"strings"

	"github.com/hashicorp/nomad/api"

	"github.com/topsail-serving/topsail/serving"
)

// bundleFile is where a replica's bundle lies in its task's folder, and managementFile
// where it learns which management processes there are.
const (
	bundleFile     = "local/bundle.zip"
	managementFile = "${NOMAD_TASK_DIR}/management"
)

// bundleArgs have the topsail program unpack a bundle, see to its environment, and become its runtime.
func bundleArgs(c serving.Container, driver string, s Settings) []string {
	args := []string{"runtime"}
	if bundleSource(c, s) != "" {
		args = append(args, "--bundle", "${NOMAD_TASK_DIR}/bundle.zip")
	} else {
		args = append(args, s.managementArgs()...)
	}
	args = append(args, "--digest", c.Bundle)
	if work := workDir(driver, s); work != "" {
		args = append(args, "--work", work)
	}
	return args
}

// prepareBundle has what a bundle needs be where its task runs.
func prepareBundle(t *api.Task, c serving.Container, s Settings) {
	source := bundleSource(c, s)
	if source == "" {
		knowManagement(t)
	}
	if t.Driver == docker {
		keepWork(t, s)
	} else {
		t.Artifacts = append(t.Artifacts, s.Program.artifacts()...)
	}
	if source != "" {
		bundle := newArtifact(source, c.Bundle, bundleFile, "file")
		bundle.GetterOptions["archive"] = "false" // it is not unpacked
		t.Artifacts = append(t.Artifacts, bundle)
	}
}

// dockerWork is where a container of docker finds what bundles need, unless a folder of
// the node is configured for it, and dockerVolume the volume of the node that keeps it.
const (
	dockerWork   = "/var/cache/topsail"
	dockerVolume = "topsail-bundles"
)

// workDir is where a task keeps what bundles need; empty where that is for the program to say.
func workDir(driver string, s Settings) string {
	if driver == docker {
		return cmp.Or(s.WorkDir, dockerWork)
	}
	return s.WorkDir
}

// keepWork keeps environments on the node from one container of docker to the next: those with CUDA take
// minutes to install.
func keepWork(t *api.Task, s Settings) {
	if s.WorkDir != "" {
		t.Config["volumes"] = []string{s.WorkDir + ":" + s.WorkDir}
	} else {
		t.Config["mount"] = []map[string]any{{"type": "volume", "source": dockerVolume, "target": dockerWork}}
	}
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

// checkBundle says why no job can run the version's bundle, or nil.
func checkBundle(v *serving.Version, s Settings) error {
	c := v.Container
	switch {
	case c.Bundle == "":
		return nil
	case (c.Driver == docker || c.Driver == "" && s.Driver == docker) && s.RuntimeImage == "":
		return errors.New("with the driver \"docker\" bundles run in an image that has topsail and Python: set jobs.runtime_image, or give the version another driver")
	}
	return nil
}
