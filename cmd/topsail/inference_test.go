//go:build system

package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"testing"
)

const namedModel = `
import topsail

def describe(inputs):
    return [{"score": float(x["image"].sum()), "words": x["text"].split()} for x in inputs]

def add(inputs):
    return [float(x.sum()) for x in inputs]

def words(text):
    for word in text.split():
        yield word + " "
`

// Triton's clients, as PyPI has them, ask an app with a vector and one with a signature.
func TestTritonsClients(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "named.py"), []byte(namedModel), 0o600); err != nil {
		t.Fatal(err)
	}
	const signature = `{ inputs = [{ name = "image", type = "uint8", shape = [-1, 2] }, { name = "text", type = "string" }],
  outputs = [{ name = "score", type = "float32" }, { name = "words", type = "string", shape = [-1] }] }`
	in := start(t, dir, fmt.Sprintf(`
[gateway]
grpc_addr = "127.0.0.1:0"

[[app]]
name = "sum"
input_type = "doubles"
default_output = "none"
latency_slo_micros = 5000000
models = ["sum"]

[[app]]
name = "caption"
input_type = "tensors"
signature = %[1]s
default_output = "none"
latency_slo_micros = 5000000
models = ["captioner"]

[[app]]
name = "words"
input_type = "strings"
default_output = "none"
latency_slo_micros = 5000000
models = ["words"]

[[model]]
name = "words"
version = "1"
input_type = "strings"
command = ["python3", "-m", "topsail", "named.py:words"]
env = { TOPSAIL_TEST = %[2]q, PYTHONPATH = %[3]q }

[[model]]
name = "sum"
version = "1"
input_type = "doubles"
command = ["python3", "-m", "topsail", "named.py:add"]
env = { TOPSAIL_TEST = %[2]q, PYTHONPATH = %[3]q }

[[model]]
name = "captioner"
version = "1"
signature = %[1]s
command = ["python3", "-m", "topsail", "named.py:describe"]
env = { TOPSAIL_TEST = %[2]q, PYTHONPATH = %[3]q }
`, signature, dir, sdk(t))).ready()
	grpc := regexp.MustCompile(`gRPC +([0-9.:]+)`).FindStringSubmatch(in.output())
	for script, addr := range map[string]string{"triton_http.py": in.gateway, "triton_grpc.py": grpc[1]} {
		out, err := exec.CommandContext(t.Context(), "python3", filepath.Join("testdata", script), addr).CombinedOutput()
		if err != nil {
			t.Errorf("%s: %v\n%s", script, err, out)
		}
	}
}
