package manage

import (
	"bufio"
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
)

// Events pass as they come, a refusal is answered as a whole, and the gateway sees who leaves.
func TestAskParts(t *testing.T) {
	gone := make(chan struct{})
	gateway := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Accept") != eventStream || r.Header.Get("X-Api-Key") != "key" {
			t.Errorf("headers %v", r.Header)
		}
		if r.URL.Path == "/none/predict" {
			http.Error(w, `{"error":"Unknown app"}`, http.StatusNotFound)
			return
		}
		w.Header().Set("Content-Type", eventStream)
		fmt.Fprint(w, "data: {\"output\":\"a\"}\n\n")
		w.(http.Flusher).Flush()
		<-r.Context().Done()
		close(gone)
	}))
	defer gateway.Close()
	g := Gateway{URL: func() string { return gateway.URL }, Key: func() []byte { return []byte("key") }, Client: gateway.Client()}
	ctx, leave := context.WithCancel(t.Context())
	parts, _, err := g.AskParts(ctx, "app", []byte(`{"input":1}`))
	if err != nil {
		t.Fatal(err)
	}
	if line, err := bufio.NewReader(parts).ReadString('\n'); err != nil || line != "data: {\"output\":\"a\"}\n" {
		t.Errorf("%q, %v", line, err)
	}
	leave()
	parts.Close()
	select {
	case <-gone:
	case <-time.After(time.Minute):
		t.Error("the gateway goes on")
	}
	parts, trial, err := g.AskParts(t.Context(), "none", []byte(`{"input":1}`))
	if err != nil || parts != nil || trial.Status != http.StatusNotFound || !strings.Contains(string(trial.Answer), "Unknown app") {
		t.Errorf("%v, %+v, %v", parts, trial, err)
	}
}
