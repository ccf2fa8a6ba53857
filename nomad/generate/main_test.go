package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/topsail-serving/topsail/nomad"
	"github.com/topsail-serving/topsail/test/require"
)

func TestJobsAreWhatTheTemplateMakes(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, nomad.WriteJobs(dir))
	made, err := os.ReadDir(dir)
	if err != nil || len(made) != 4 {
		t.Fatalf("%d jobs were made, error %v", len(made), err)
	}
	for _, file := range made {
		want, err := os.ReadFile(filepath.Join(dir, file.Name()))
		require.NoError(t, err)
		if got, err := os.ReadFile(filepath.Join("..", "jobs", file.Name())); err != nil || string(got) != string(want) {
			t.Errorf("nomad/jobs/%s is not what the template makes (%v): run make generate", file.Name(), err)
		}
	}
}
