//go:build servers

package nomadfleet

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/topsail-serving/topsail/serving"
)

// TestEveryTemplateIsValid gives the golden files of package jobs to Nomad.
func TestEveryTemplateIsValid(t *testing.T) {
	t.Parallel()
	f := open(t, settings(t))
	files, err := filepath.Glob("../../../jobs/testdata/*.hcl")
	if err != nil || len(files) < 7 {
		t.Fatalf("%d files, error %v", len(files), err)
	}
	for _, file := range files {
		hcl, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := f.Validate(t.Context(), string(hcl)); err != nil {
			t.Errorf("%s: %v", file, err)
		}
	}
}

func TestInvalidJobs(t *testing.T) {
	t.Parallel()
	f := open(t, settings(t))
	for hcl, want := range map[string]string{
		"job": "Failed to parse job",
		"job \"x\" {\n group \"g\" {\n count = -1\n }\n}":       "Missing tasks",
		"job \"x\" {\n group \"g\" {\n task \"t\" {\n }\n }\n}": "Missing task driver",
	} {
		if _, err := f.Validate(t.Context(), hcl); !errors.Is(err, serving.ErrJobRefused) || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", hcl, err)
		}
	}
}
