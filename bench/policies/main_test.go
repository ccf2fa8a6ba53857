package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/topsail-serving/topsail/test/require"
)

func TestRunWritesEverything(t *testing.T) {
	folder := t.TempDir()
	tables, plots, figures := filepath.Join(folder, "t.json"), filepath.Join(folder, "p.json"), filepath.Join(folder, "docs", "f.md")
	if err := run(t.Output(), tables, plots, figures, 1200); err == nil || !strings.Contains(err.Error(), "make selection") {
		t.Errorf("without tables: %v", err)
	}
	writeTables(t, tables)
	if err := run(t.Output(), tables, plots, figures, 600); err != nil && !strings.Contains(err.Error(), "FAILED") {
		t.Fatal(err)
	}
	page, drawn := read(t, figures), read(t, plots)
	for _, s := range studies() {
		for _, policy := range s.policies {
			if !strings.Contains(page, "| `"+policy+"` |") {
				t.Errorf("%s has no row", policy)
			}
		}
	}
	for _, file := range []string{"regret-stationary", "regret-drift", "share-drift", "ensembles", "regret-specialists", "numbers", "odd"} {
		if !strings.Contains(page, "]("+file+".svg)") || !strings.Contains(drawn, `"file":"`+file+`"`) {
			t.Errorf("%s is not drawn or not shown", file)
		}
	}
	if strings.Contains(page, "NaN") || strings.Contains(page, "%!") {
		t.Error(page)
	}
}

func writeTables(t *testing.T, path string) {
	t.Helper()
	var tables []*Table
	for _, name := range []string{"five", "specialists", "pixels", "numbers", "odd"} {
		table := three()
		table.Name = name
		tables = append(tables, table)
	}
	text, err := json.Marshal(tables)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(path, text, 0o600))
}

func read(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	return string(text)
}
