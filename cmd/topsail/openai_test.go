//go:build system

package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"
)

const chatModels = `
import asyncio, time
import topsail

async def bot(request):
    if "prompt" in request:
        yield request["prompt"]
        return
    if not request["messages"]:
        raise ValueError("there is no message")
    for word in request["messages"][-1]["content"].split()[: request.get("max_tokens")]:
        yield word + " "
        await asyncio.sleep(0.2)

def fragile(request):
    if request["messages"][-1]["content"] == "go on":
        yield "so far "
    raise RuntimeError("it broke")

def slow(request):
    try:
        while True:
            yield "and "
            time.sleep(0.05)
    finally:
        with open("log", "a") as log:
            log.write("the model was stopped\n")

def vectors(inputs):
    return [[float(len(x)), 0.5] for x in inputs]
`

// OpenAI's client, as PyPI has it, asks for chats, completions and embeddings, with a key.
func TestOpenAIsClient(t *testing.T) {
	dir := t.TempDir()
	const key = "a-key-for-queries-of-the-test"
	for name, text := range map[string]string{"chats.py": chatModels, "keys": key + "\n", "log": ""} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	file := fmt.Sprintf("[gateway]\nkeys_file = %q\n", filepath.Join(dir, "keys"))
	for name, takes := range map[string]string{"bot": "chat", "fragile": "chat", "slow": "chat", "vectors": "strings"} {
		file += appConfig(name, takes, "", 5*time.Second, name) + pythonModel(t, name, takes, "chats.py:"+name, dir)
	}
	in := start(t, dir, file).ready()
	out, err := exec.CommandContext(t.Context(), "python3", filepath.Join("testdata", "openai_client.py"), in.gateway, key, filepath.Join(dir, "log")).CombinedOutput()
	if err != nil {
		t.Errorf("%v\n%s\n%s", err, out, in.output())
	}
}
