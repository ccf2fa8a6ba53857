package serving

import "testing"

func TestDockerRunsAnImageOrABundle(t *testing.T) {
	for name, c := range map[string]struct {
		spec ContainerSpec
		ok   bool
	}{
		"nothing": {ContainerSpec{Driver: "docker"}, false},
		"image":   {ContainerSpec{Driver: "docker", Image: "models/wine:1"}, true},
		"bundle":  {ContainerSpec{Driver: "docker", Bundle: "sha256:e3b0"}, true},
	} {
		if err := c.spec.checkCluster(); (err == nil) != c.ok {
			t.Errorf("%s: %v", name, err)
		}
	}
}
