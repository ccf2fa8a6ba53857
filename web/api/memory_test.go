package api

import (
	"fmt"
	"strings"
	"testing"

	"github.com/topsail-serving/topsail/internal/budget"
	"github.com/topsail-serving/topsail/internal/obs"
	"github.com/topsail-serving/topsail/web/inflight"
)

// When memory is short, what is large is refused before anything is done, and what is small
// or streams is served on.
func TestWhenMemoryIsShort(t *testing.T) {
	w := having(t)
	b := budget.New(1 << 20)
	w.handler = inflight.New(b, obs.NewRegistry()).Handler(w.handler)
	large := `{"apps":[` + strings.Repeat(" ", 100_000) + `]}`
	for i := range 60 {
		expect(t, w.ask("POST", "/apps", fmt.Sprintf(`{"name":"app%d","input_type":"d","latency_slo_micros":1000,"description":%q}`, i, strings.Repeat("x", 900))), 201)
	}
	expect(t, w.ask("POST", "/catalog", large), 200)
	expect(t, w.ask("GET", "/catalog", ""), 200)
	other := b.Lease()
	if !other.Take(1<<19 - 5_000) {
		t.Fatal("no room")
	}
	done := len(w.signed)
	answer := w.ask("POST", "/catalog", large)
	expectCode(t, answer, 503, "no_memory", "send the request again", "gateway.max_inflight_bytes")
	if answer.Header().Get("Retry-After") != "1" {
		t.Errorf("headers %v", answer.Header())
	}
	expectCode(t, w.ask("GET", "/catalog", ""), 503, "no_memory")
	if len(w.signed) != done {
		t.Errorf("%d changes", len(w.signed)-done)
	}
	expect(t, w.ask("GET", "/apps/app1", ""), 200)
	expect(t, w.ask("POST", "/apps", small), 201)
	expect(t, w.ask("POST", "/artifacts", `{"format":1,"runtime":"python","input_type":"doubles","files":{}}`, "Content-Type", "application/zip"), 201)
	// What is done is answered, however large the answer is.
	expect(t, w.ask("POST", "/catalog?dry_run=true", `{"prune":true}`), 200)
	other.Release()
	expect(t, w.ask("POST", "/catalog", large), 200)
	expect(t, w.ask("GET", "/catalog", ""), 200)
	if b.Used() != 0 {
		t.Errorf("%d are left", b.Used())
	}
}

// Anybody may send what begins a session, so it is short.
func TestSessionsAreShort(t *testing.T) {
	w := having(t)
	expectCode(t, w.askBy("", "POST", "/session", `{"key":"`+strings.Repeat("x", maxSession)+`"}`), 413, "too_large", "4096 bytes")
}
