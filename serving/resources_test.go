package serving

import "testing"

func TestDockerRunsAnImageOrABundle(t *testing.T) {
	for name, c := range map[string]struct {
		spec Container
		ok   bool
	}{
		"nothing": {Container{Driver: "docker"}, false},
		"image":   {Container{Driver: "docker", Image: "models/wine:1"}, true},
		"bundle":  {Container{Driver: "docker", Bundle: "sha256:e3b0"}, true},
	} {
		if err := c.spec.checkCluster(); (err == nil) != c.ok {
			t.Errorf("%s: %v", name, err)
		}
	}
}
