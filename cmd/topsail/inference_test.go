//go:build system

package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"
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
	named := "input_type = \"tensors\"\nsignature = " + signature
	in := start(t, dir, "[gateway]\ngrpc_addr = \"127.0.0.1:0\"\n"+
		appConfig("sum", "doubles", "none", 5*time.Second, "sum")+
		strings.Replace(appConfig("caption", "tensors", "none", 5*time.Second, "captioner"), `input_type = "tensors"`, named, 1)+
		appConfig("words", "strings", "none", 5*time.Second, "words")+
		pythonModel(t, "words", "strings", "named.py:words", dir)+
		pythonModel(t, "sum", "doubles", "named.py:add", dir)+
		strings.Replace(pythonModel(t, "captioner", "tensors", "named.py:describe", dir), `input_type = "tensors"`, "signature = "+signature, 1)).ready()
	grpc := regexp.MustCompile(`gRPC +([0-9.:]+)`).FindStringSubmatch(in.output())
	for script, addr := range map[string]string{"triton_http.py": in.gateway, "triton_grpc.py": grpc[1]} {
		out, err := exec.CommandContext(t.Context(), "python3", filepath.Join("testdata", script), addr).CombinedOutput()
		if err != nil {
			t.Errorf("%s: %v\n%s", script, err, out)
		}
	}
}
