package jobs

import (
	"strings"
	"testing"

	"github.com/topsail-serving/topsail/serving"
	"github.com/topsail-serving/topsail/serving/catalog"
)

// TestHide: a job without secrets shows all the rest, and the version that it was made from keeps them.
func TestHide(t *testing.T) {
	s := base()
	s.Settings.Program = Program{Source: "https://u:s3cret@models.example/topsail", Checksum: checksum}
	s.Settings.SidecarEnv = map[string]string{"TOPSAIL_INFLUXDB_TOKEN": "s3cret"}
	s.Version.Container = serving.Container{
		Command:   []string{"python", "m.py", "--from", "https://u:s3cret@models.example/m?sig=s3cret"},
		Env:       map[string]string{"TOKEN": "s3cret", "TRICK": "}\n\" = \"s3cret\""},
		Artifacts: []serving.Artifact{{Source: "https://models.example/a?sig=s3cret"}, {Source: "git@models.example:m/n.git?sshkey=s3cret"}},
	}
	whole, err := Shown(s, true)
	if err != nil || strings.Count(whole, "s3cret") != 8 {
		t.Fatalf("got %s, error %v; want all that is secret", whole, err)
	}
	text, err := Shown(s, false)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		`"TOKEN": "(hidden)"`, `"TRICK": "(hidden)"`, `"TOPSAIL_INFLUXDB_TOKEN": "(hidden)"`, `"PYTHONUNBUFFERED": "(hidden)"`, `"command": "python"`, `"m.py"`,
		`"https://(hidden)@models.example/m?(hidden)"`, `"https://models.example/a?(hidden)"`, `"git@models.example:m/n.git?(hidden)"`, `"https://(hidden)@models.example/topsail"`,
	} {
		if !strings.Contains(text, want) {
			t.Errorf("there is no %s in\n%s", want, text)
		}
	}
	if strings.Contains(text, "s3cret") {
		t.Errorf("there is a secret in\n%s", text)
	}
	if again, err := Shown(s, true); err != nil || again != whole || s.Version.Container.Env["TOKEN"] == catalog.Hidden {
		t.Errorf("the version has changed: %+v, error %v", s.Version.Container, err)
	}
}
