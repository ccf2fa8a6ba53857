//go:build servers

package jobs

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/hashicorp/nomad/api"
	"pgregory.net/rapid"

	"github.com/topsail-serving/topsail/serving"
	"github.com/topsail-serving/topsail/test/servers"
)

// TestNomad gives jobs to a real Nomad without nodes.
func TestNomad(t *testing.T) {
	client := startNomad(t)
	t.Run("takes every job, and finds it unchanged", func(t *testing.T) {
		for name, change := range variants {
			job := made(t, change)
			valid(t, name, client, job)
			register(t, client, job)
			plan, _, err := client.Jobs().Plan(made(t, change), true, nil)
			if err != nil || plan.Diff.Type != "None" {
				t.Errorf("%s, again: %+v, error %v", name, plan, err)
			}
		}
	})
	t.Run("takes what is shown of one", func(t *testing.T) {
		for name, change := range variants {
			job := made(t, change)
			register(t, client, job)
			if said, code := runPlan(t, client, Text(job)); code != 0 {
				t.Errorf("%s: exit code %d, and\n%s", name, code, said)
			}
		}
	})
	t.Run("changes no text", func(t *testing.T) { rapid.Check(t, func(t *rapid.T) { checkTexts(t, client) }) })
}

// startNomad is a server that takes jobs which use Vault, of which there is none.
func startNomad(t *testing.T) *api.Client {
	t.Helper()
	port, err := servers.FreePorts(3)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	server, err := servers.NomadServer(dir, port, servers.NomadOptions{Consul: "127.0.0.1:1"})
	if err != nil {
		t.Fatal(err)
	}
	file, err := os.OpenFile(filepath.Join(dir, "nomad-server.hcl"), os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := file.WriteString("vault {\n  enabled = true\n  address = \"http://127.0.0.1:1\"\n}\n"); err != nil {
		t.Fatal(err)
	}
	if err := file.Close(); err != nil {
		t.Fatal(err)
	}
	if err := server.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(server.Stop)
	client, err := api.NewClient(&api.Config{Address: "http://" + server.Addr})
	if err != nil {
		t.Fatal(err)
	}
	return client
}

func valid(t *testing.T, name string, client *api.Client, job *api.Job) {
	t.Helper()
	answer, _, err := client.Jobs().Validate(job, nil)
	if err != nil || len(answer.ValidationErrors) > 0 || answer.Error != "" {
		t.Errorf("%s: %+v, error %v", name, answer, err)
	}
}

func register(t rapid.TB, client *api.Client, job *api.Job) {
	t.Helper()
	if _, _, err := client.Jobs().Register(job, nil); err != nil {
		t.Fatalf("register\n%s%v", Text(job), err)
	}
}

// runPlan has the nomad program read a job, and returns its exit code: 0 where nothing would change.
func runPlan(t *testing.T, client *api.Client, text string) (said string, code int) {
	t.Helper()
	program, err := servers.Binary("nomad")
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), program, "job", "plan", "-json", "-")
	cmd.Env = append(os.Environ(), "NOMAD_ADDR="+client.Address())
	cmd.Stdin = strings.NewReader(text)
	out, _ := cmd.CombinedOutput()
	return string(out), cmd.ProcessState.ExitCode()
}

// hostileText is text that means something to HCL, to JSON, to Nomad's templates or to nothing.
func hostileText(t *rapid.T, label string) string {
	pieces := []string{
		"${", "%{", "}", "$", "%", "$$", "%%", "$${", "%%{", `"`, `\`, `\"`, `\u0024{`, "\n", "\r\n", "\t", "\x00", "\x1b", "\x7f",
		"{{", "}}", "<<EOT", "\nEOT\n", "#", "//", "/*", "*/", "=", "'", "`", " ", "\u2028", "é", "e\u0301", "日本", "😀", "\ufeff", "<", "&",
		"${NOMAD_ALLOC_ID}", "${NOMAD_", "${env.HOME}", "${var.x}", "%{ if true }", "%{ endif }", "${upper(\"x\")}", "a", "Z", "0",
	}
	return strings.Join(rapid.SliceOfN(rapid.SampledFrom(pieces), 0, 9).Draw(t, label), "")
}

func hostileName(t *rapid.T, label string) string {
	return "N" + rapid.StringMatching(`[A-Za-z0-9 ."${}%\\\n#/-]{0,8}`).Draw(t, label)
}

// checkTexts has Nomad keep a job whose version and settings have texts of any kind.
func checkTexts(t *rapid.T, client *api.Client) {
	text := func(label string) string { return hostileText(t, label) }
	job, err := Make(Spec{
		Version: &serving.Version{
			ModelID:   serving.ModelID{Model: "wine", Version: text("version")},
			InputType: serving.Doubles,
			Container: serving.Container{
				Command:   []string{"c" + text("command"), text("argument 1"), text("argument 2")},
				Dir:       "/" + text("dir"),
				Image:     "i" + text("image"),
				Env:       map[string]string{hostileName(t, "name 1"): text("value 1"), hostileName(t, "name 2"): text("value 2")},
				Artifacts: []serving.Artifact{{Source: "s" + text("source"), Checksum: checksum, Destination: "d" + text("destination")}},
			},
			Resources: serving.Resources{GPU: serving.GPU{Count: 1, Runtime: "r" + text("runtime"), Device: "d" + text("device")}},
		},
		Settings: Settings{
			Program: Program{Source: "p" + text("program")}, VaultRole: "v" + text("role"), TokenFile: "t" + text("token"), Datacenters: []string{"d" + text("datacenter")},
			SidecarEnv: map[string]string{hostileName(t, "name 3"): text("value 3")},
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	register(t, client, job)
	kept, _, err := client.Jobs().Info(*job.ID, nil)
	if err != nil {
		t.Fatal(err)
	}
	has(t, "", through(t, kept), through(t, job))
}

// through is what is set of a job, as it comes out of JSON.
func through(t *rapid.T, job *api.Job) (fields any) {
	if err := json.Unmarshal([]byte(Text(job)), &fields); err != nil {
		t.Fatal(err)
	}
	return fields
}

// has checks that a value has everything that another one has.
func has(t *rapid.T, path string, got, want any) {
	switch want := want.(type) {
	case map[string]any:
		for name, one := range want {
			fields, _ := got.(map[string]any)
			has(t, path+"."+name, fields[name], one)
		}
	case []any:
		for i, one := range want {
			list, _ := got.([]any)
			if len(list) != len(want) {
				t.Fatalf("%s is %#v; want %#v", path, got, want)
			}
			has(t, fmt.Sprintf("%s.%d", path, i), list[i], one)
		}
	default:
		if got != want {
			t.Fatalf("%s is %#v; want %#v", path, got, want)
		}
	}
}
