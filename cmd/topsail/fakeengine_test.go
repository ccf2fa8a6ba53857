package main

import (
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
)

// fakeEngine is an inference engine: it answers chats with the words of the last message, and waits after the
// first of them until it may go on.
type fakeEngine struct {
	*testing.T
	addr    string
	server  *httptest.Server
	goOn    chan struct{}                  // has one for each answer
	running atomic.Int32                   // requests that it works on
	asked   atomic.Pointer[map[string]any] // the last request
	adapted sync.Map                       // adapters by name, with where they are
}

func newEngine(t *testing.T) *fakeEngine {
	e := &fakeEngine{T: t, addr: "127.0.0.1:0", goOn: make(chan struct{}, 100)}
	e.start()
	t.Cleanup(e.stop)
	return e
}

// start starts it, at its former address if it has run before.
func (e *fakeEngine) start() {
	e.Helper()
	ln, err := net.Listen("tcp", e.addr)
	if err != nil {
		e.Fatal(err)
	}
	e.addr = ln.Addr().String()
	e.server = &httptest.Server{Listener: ln, Config: &http.Server{Handler: e}}
	e.server.Start()
}

func (e *fakeEngine) stop() {
	e.server.CloseClientConnections()
	e.server.Close()
}

func (e *fakeEngine) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	switch r.URL.Path {
	case "/health":
	case "/v1/models":
		_, _ = io.WriteString(w, `{"object": "list", "data": [{"id": "qwen"}]}`)
	case "/metrics":
		fmt.Fprintf(w, "vllm:num_requests_running{engine=\"0\"} %d\n", e.running.Load())
	case "/v1/chat/completions":
		e.chat(w, r)
	case "/v1/load_lora_adapter", "/v1/unload_lora_adapter":
		var about struct {
			Name string `json:"lora_name"`
			Path string `json:"lora_path"`
		}
		if err := json.NewDecoder(r.Body).Decode(&about); err != nil {
			e.Error(err)
		}
		if r.URL.Path == "/v1/load_lora_adapter" {
			e.adapted.Store(about.Name, about.Path)
		} else {
			e.adapted.Delete(about.Name)
		}
	default:
		http.NotFound(w, r)
	}
}

func (e *fakeEngine) chat(w http.ResponseWriter, r *http.Request) {
	e.running.Add(1)
	defer e.running.Add(-1)
	var asked map[string]any
	if err := json.NewDecoder(r.Body).Decode(&asked); err != nil {
		e.Error(err)
	}
	e.asked.Store(&asked)
	messages := asked["messages"].([]any)
	words := strings.Fields(messages[len(messages)-1].(map[string]any)["content"].(string))
	for i, word := range words {
		if i == 1 {
			select {
			case <-e.goOn:
			case <-r.Context().Done():
				return
			}
		}
		fmt.Fprintf(w, "data: {\"choices\": [{\"index\": 0, \"delta\": {\"content\": %q}, \"finish_reason\": null}]}\n\n", word+" ")
		w.(http.Flusher).Flush()
	}
	fmt.Fprintf(w, "data: {\"choices\": [{\"index\": 0, \"delta\": {}, \"finish_reason\": \"stop\"}]}\n\n")
	fmt.Fprintf(w, "data: {\"choices\": [], \"usage\": {\"prompt_tokens\": 5, \"completion_tokens\": %d}}\n\ndata: [DONE]\n\n", len(words))
}
