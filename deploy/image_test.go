package deploy

import (
	"os"
	"strings"
	"testing"
)

// TestRuntimeImage holds the recipe of the documentation and the file in the tree together.
func TestRuntimeImage(t *testing.T) {
	recipe, err := os.ReadFile("image/Dockerfile")
	if err != nil {
		t.Fatal(err)
	}
	page, err := os.ReadFile("../docs/bundles.md")
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(page), "```dockerfile\n"+string(recipe)+"```\n") {
		t.Errorf("docs/bundles.md does not show deploy/image/Dockerfile:\n%s", recipe)
	}
}
