//go:build servers

package nomadfleet

import (
	"slices"
	"testing"

	"github.com/hashicorp/nomad/api"
	"pgregory.net/rapid"

	"github.com/topsail-serving/topsail/jobs"
	"github.com/topsail-serving/topsail/serving"
)

// hostileText is text that means something to HCL, to Nomad's templates or to
// nobody. (All of it is in Unicode's normal form C, as HCL brings text into it.)
func hostileText() *rapid.Generator[string] {
	pieces := []string{
		"${", "%{", "}", "$", "%", "$$", "%%", "$${", "%%{", `"`, `\`, `\"`, `\u0024{`, "\n", "\r\n", "\t", "\x00", "\x1b", "\x7f",
		"{{", "}}", "<<EOT", "\nEOT\n", "#", "//", "/*", "*/", "=", "'", "`", " ", "\u2028", "é", "日本", "😀", "\ufeff",
		"${NOMAD_ALLOC_ID}", "${NOMAD_", "${env.HOME}", "${var.x}", "%{ if true }", "%{ endif }", "${upper(\"x\")}", "a", "Z", "0",
	}
	return rapid.Custom(func(t *rapid.T) string {
		text := ""
		for _, piece := range rapid.SliceOfN(rapid.SampledFrom(pieces), 0, 9).Draw(t, "pieces") {
			text += piece
		}
		return text
	})
}

func hostileName(t *rapid.T, label string) string {
	return "N" + rapid.StringMatching(`[A-Za-z0-9 ."${}%\\\n#/-]{0,8}`).Draw(t, label)
}

// TestHostileTexts: whatever a version's texts hold, Nomad reads exactly that.
func TestHostileTexts(t *testing.T) {
	t.Parallel()
	f := open(t, settings(t))
	rapid.Check(t, func(t *rapid.T) {
		text := func(label string) string { return hostileText().Draw(t, label) }
		v := &serving.Version{
			ModelID:   serving.ModelID{Model: text("model"), Version: text("version")},
			InputType: serving.Doubles,
			Container: serving.Container{
				Command:   []string{"c" + text("command"), text("argument 1"), text("argument 2")},
				Dir:       "/" + text("dir"),
				Image:     "i" + text("image"),
				Env:       map[string]string{hostileName(t, "name 1"): text("value 1"), hostileName(t, "name 2"): text("value 2")},
				Artifacts: []serving.Artifact{{Source: text("source"), Checksum: text("checksum"), Destination: "d" + text("destination")}},
			},
			Resources: serving.Resources{GPU: serving.GPU{Count: 1, Runtime: "r" + text("runtime"), Device: "d" + text("device")}},
		}
		s := jobs.Settings{
			Program: jobs.Program{Source: "p" + text("program")}, VaultRole: "v" + text("role"), NodePool: "n" + text("pool"), Namespace: "n" + text("namespace"),
			Region: "r" + text("region"), Datacenters: []string{text("datacenter")}, TokenFile: "t" + text("token"),
			SidecarEnv: map[string]string{hostileName(t, "name 3"): text("value 3")},
		}
		hcl, err := jobs.Render(jobs.Spec{Version: v, Settings: s})
		if err != nil {
			t.Fatal(err)
		}
		job, err := f.client.Jobs().ParseHCL(hcl, true)
		if err != nil {
			t.Fatalf("%v in\n%s", err, hcl)
		}
		checkTexts(t, job, v, s)
	})
}

func checkTexts(t *rapid.T, job *api.Job, v *serving.Version, s jobs.Settings) {
	same := func(what string, got any, want string) {
		if got != want {
			t.Fatalf("%s: Nomad reads %q, not %q", what, got, want)
		}
	}
	sidecar, container := job.TaskGroups[0].Tasks[0], job.TaskGroups[0].Tasks[1]
	service := job.TaskGroups[0].Services[0]
	for name, value := range v.Container.Env {
		same("env "+name, container.Env[name], value)
	}
	for name, value := range s.SidecarEnv {
		same("sidecar env "+name, sidecar.Env[name], value)
	}
	args := container.Config["args"].([]any)
	if !slices.EqualFunc(args, v.Container.Command[1:], func(got any, want string) bool { return got == want }) {
		t.Fatalf("arguments: Nomad reads %q, not %q", args, v.Container.Command[1:])
	}
	c := v.Container
	same("command", container.Config["command"], c.Command[0])
	same("dir", container.Config["work_dir"], c.Dir)
	same("image", container.Config["image"], c.Image)
	same("runtime", container.Config["runtime"], v.Resources.GPU.Runtime)
	same("device", container.Resources.Devices[0].Name, v.Resources.GPU.Device)
	same("source", *container.Artifacts[0].GetterSource, c.Artifacts[0].Source)
	same("checksum", container.Artifacts[0].GetterOptions["checksum"], c.Artifacts[0].Checksum)
	same("destination", *container.Artifacts[0].RelativeDest, c.Artifacts[0].Destination)
	same("role", container.Vault.Role, s.VaultRole)
	same("program", sidecar.Config["command"], s.Program.Source)
	same("token file", sidecar.Env["TOPSAIL_SIDECAR_TOKEN_FILE"], s.TokenFile)
	same("region", *job.Region, s.Region)
	same("namespace", *job.Namespace, s.Namespace)
	same("node pool", *job.NodePool, s.NodePool)
	same("datacenter", job.Datacenters[0], s.Datacenters[0])
	for _, meta := range []map[string]string{job.Meta, {jobs.MetaModel: service.Meta["model"], jobs.MetaVersion: service.Meta["version"]}} {
		same("model", meta[jobs.MetaModel], v.Model)
		same("version", meta[jobs.MetaVersion], v.Version)
	}
	same("id", *job.ID, jobs.ID(v.ModelID))
}
