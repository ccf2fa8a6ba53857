package api

import (
	"context"
	"encoding/json"
	"testing"

	"github.com/topsail-serving/topsail/serving"
)

func TestJob(t *testing.T) {
	w := having(t)
	expect(t, w.ask("GET", "/models/m/versions/1/job", ""), 200, `{"kind":"nomad","text":"job m:1"}`)
	expectCode(t, w.ask("GET", "/models/m/versions/9/job", ""), 404, "not_found")
}

// A job has the variables of its containers, which are hidden from those who may not see
// them in the version.
func TestJobsHideVariables(t *testing.T) {
	w := having(t)
	text := `    task "container" {
      config {
        command = "python"
        args = ["m.py", "--from", "https://u:s3cret@models.example/m"]
      }

      env = {
        "TOKEN" = "s3cret"
        "TRICK" = "}\n\" = \"s3cret\""
        "PYTHONUNBUFFERED" = "1"
      }

      artifact {
        source      = "https://models.example/a?sig=s3cret"
      }
    }
`
	w.api.Job = func(context.Context, serving.ModelID) (Job, error) { return Job{Kind: "nomad", Text: text}, nil }
	for _, name := range []string{"viewer", "operator"} {
		answer := w.askBy(name, "GET", "/models/m/versions/1/job", "")
		expect(t, answer, 200, `\"TOKEN\" = \"(hidden)\"`, `\"TRICK\" = \"(hidden)\"`, `command = \"python\"`, `https://(hidden)@models.example/m\"]`,
			`https://models.example/a?(hidden)\"`, "!", "s3cret")
	}
	if shown := read[Job](t, w.askBy("deployer", "GET", "/models/m/versions/1/job", "")); shown.Text != text {
		t.Errorf("got %s", shown.Text)
	}
	var local Job
	local.Text = "cd /srv && python m.py --bundle https://models.example/b?sig=s3cret --more"
	shown, _ := json.Marshal(withoutSecrets(local.Text))
	if want := `"cd /srv \u0026\u0026 python m.py --bundle https://models.example/b?(hidden) --more"`; string(shown) != want {
		t.Errorf("got %s", shown)
	}
}
