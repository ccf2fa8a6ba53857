package access

import (
	"net/http"
	"net/http/httptest"
	"testing"
)

func TestHosts(t *testing.T) {
	hosts := append(HostOf("192.0.2.9:1390"), HostOf(":1390")...)
	hosts = append(hosts, HostOf("Ops.example:1390")...)
	open := hosts.Handler(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(200) }))
	for host, want := range map[string]int{
		"localhost:1390": 200, "LOCALHOST": 200, "127.0.0.1:1390": 200, "127.9.9.9": 200, "[::1]:1390": 200, "[::1]": 200, "::1": 200,
		"[::ffff:127.0.0.1]:1390": 200, "192.0.2.9:1390": 200, "192.0.2.9": 200, "ops.example.:1390": 200,
		"": 403, ":1390": 403, "evil.example:1390": 403, "localhost.evil.example": 403, "127.0.0.1.evil.example:1390": 403, "192.0.2.10:1390": 403,
	} {
		w, r := httptest.NewRecorder(), httptest.NewRequest("GET", "/metrics", nil)
		r.Host = host
		open.ServeHTTP(w, r)
		if w.Code != want {
			t.Errorf("Host %q: %d %s, want %d", host, w.Code, w.Body, want)
		}
	}
}
