//go:build bars

package main

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/topsail-serving/topsail/stream/models"
)

// TestEnsembleByStream configures an app and its time limit by messages, and deploys PMML by
// one whose model is at a location.
func TestEnsembleByStream(t *testing.T) {
	beside := jar(t)
	b := startRedis(t)
	shelf := t.TempDir()
	iris, err := os.ReadFile("../../examples/pmml/iris.pmml")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(shelf, "iris.pmml"), iris, 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("TOPSAIL_PMML_JAR", beside)
	sum := sha256.Sum256(iris)
	species := func(name, code string) *models.Model {
		return &models.Model{Name: name, Version: "1", Kind: "python", InputType: "doubles", InputLength: 4, Python: pythonHere(t), Entry: "m:predict", Data: []byte(code)}
	}
	b.updates(t,
		models.Update{UUID: "pmml", Model: &models.Model{
			Name: "iris", Version: "1", Kind: "pmml", InputType: "doubles", InputLength: 4, Location: "file://" + shelf + "/iris.pmml", SHA256: hex.EncodeToString(sum[:]),
			Options: map[string]string{"heap": "64m"},
		}},
		models.Update{UUID: "same", Model: species("agrees", "def predict(inputs):\n    return ['setosa' for _ in inputs]\n")},
		models.Update{UUID: "stalled", Model: species("stalled", "import time\ndef predict(inputs):\n    time.sleep(30)\n    return ['virginica' for _ in inputs]\n")},
		models.Update{UUID: "ensemble", Ensemble: &models.Ensemble{
			Name: "flowers", InputType: "doubles", Models: []string{"iris", "agrees", "stalled"}, Policy: `{"kind": "vote"}`, SLO: 2_000_000, DefaultOutput: "none", OutputType: "label",
		}},
	)
	in := start(t, t.TempDir(), modelStream(b, fmt.Sprintf("locations = ['file://%s/']\n", shelf)))
	in.until("acknowledgements", func() bool { return len(b.acknowledged(t)) == 4 || len(b.read(t, "refused")) > 0 })
	if dead := b.read(t, "refused"); len(dead) > 0 {
		t.Fatalf("dead letters %v", dead)
	}
	if got := b.acknowledged(t)["ensemble"]; got != models.Configured {
		t.Errorf("the ensemble is %s", got)
	}
	person := operate(t, in)
	person.answers("flowers", "[5.1, 3.5, 1.4, 0.2]", `"setosa"`)

	// A shorter limit, by another message: the stalled one is still not waited for.
	b.updates(t, models.Update{UUID: "faster", Sequence: 2, Ensemble: &models.Ensemble{
		Name: "flowers", InputType: "doubles", Models: []string{"iris", "agrees", "stalled"}, Policy: `{"kind": "vote"}`, SLO: 1_000_000, DefaultOutput: "none", OutputType: "label",
	}})
	in.until("another limit", func() bool {
		return strings.Contains(person.do("app", "get", "flowers", "-o", "json"), `"latency_slo_micros": 1000000`)
	})
	in.gateway = regexp.MustCompile(`Gateway +http://([0-9.:]+)`).FindStringSubmatch(in.output())[1]
	slowest := time.Duration(0)
	for range 5 {
		began := time.Now()
		if a := in.explain("flowers", "[5.1, 3.5, 1.4, 0.2]"); a.Default || a.Output != "setosa" {
			t.Errorf("%+v", a)
		}
		slowest = max(slowest, time.Since(began))
	}
	if limit := time.Second; slowest > limit+limit/2 {
		t.Errorf("an answer took %v", slowest)
	}
}
