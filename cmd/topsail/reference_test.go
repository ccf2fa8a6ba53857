package main

import (
	"os"
	"testing"

	"github.com/topsail-serving/topsail/cmd/topsail/admin"
	"github.com/topsail-serving/topsail/test/require"
)

// TestReference holds docs/cli.md to the commands.
func TestReference(t *testing.T) {
	page, err := os.ReadFile("../../docs/cli.md")
	require.NoError(t, err)
	if string(page) != string(admin.Reference(rootCommand())) {
		t.Error("docs/cli.md is not what the commands say: write it anew with `go run ./cmd/topsail docs > docs/cli.md`")
	}
}
