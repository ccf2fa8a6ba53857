package jobs

import (
	"errors"
	"strings"

	"topsail/serving"
)

// bundleFile is where a replica's bundle lies in its task's folder.
const bundleFile = "local/bundle.zip"

// runBundle makes t run a bundle: the topsail program unpacks it, sees to its
// environment, and becomes its runtime.
func (t *task) runBundle(s Spec) {
	c, p := s.Version.Container, s.Settings.Program
	t.Command, t.Args = p.Source, []string{"runtime", "--bundle", "${NOMAD_TASK_DIR}/bundle.zip", "--digest", c.Bundle}
	switch {
	case t.Driver == "docker": // the stock image's entrypoint is the program
		t.Image, t.Command = s.Settings.RuntimeImage, ""
	case p.fetched():
		t.Command = "${NOMAD_TASK_DIR}/topsail"
		t.Artifacts = append(t.Artifacts, p.artifact())
	}
	if s.Settings.WorkDir != "" {
		t.Args = append(t.Args, "--work", s.Settings.WorkDir)
	}
	source := c.BundleURL
	if source == "" {
		source = strings.TrimRight(s.Settings.BundlesURL, "/") + "/api/v1/artifacts/" + c.Bundle + "/content"
	}
	t.Artifacts = append(t.Artifacts, artifact{
		Artifact: serving.Artifact{Source: source, Checksum: c.Bundle, Destination: bundleFile}, Mode: "file", Whole: true,
	})
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
	case c.BundleURL == "" && s.BundlesURL == "":
		return errors.New("nodes cannot fetch its bundle: set jobs.bundles_url to the address of the management service as nodes reach it, or give the version a bundle_url")
	case (c.Driver == "docker" || c.Driver == "" && s.Driver == "docker") && s.RuntimeImage == "":
		return errors.New("with the driver \"docker\" bundles run in an image that has topsail and Python: set jobs.runtime_image, or give the version another driver")
	}
	return nil
}
