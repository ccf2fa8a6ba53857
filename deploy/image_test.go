package deploy

import (
	"os"
	"strings"
	"testing"

	"github.com/topsail-serving/topsail/test/require"
)

// TestRuntimeImage holds the recipe of the documentation and the file in the tree together.
func TestRuntimeImage(t *testing.T) {
	recipe, err := os.ReadFile("image/Dockerfile")
	require.NoError(t, err)
	page, err := os.ReadFile("../docs/bundles.md")
	require.NoError(t, err)
	if !strings.Contains(string(page), "```dockerfile\n"+string(recipe)+"```\n") {
		t.Errorf("docs/bundles.md does not show deploy/image/Dockerfile:\n%s", recipe)
	}
}
