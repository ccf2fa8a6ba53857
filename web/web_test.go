package web

import (
	"net/http/httptest"
	"strings"
	"testing"

	"topsail/internal/access"
	"topsail/internal/access/testca"
	"topsail/serving"
)

// nothing is a system without apps.
type nothing struct{}

func (nothing) Status() Status { return Status{Gateway: "127.0.0.1:1337", Catalog: &serving.Catalog{}} }

func TestOnlyHealthIsOpenWithKeys(t *testing.T) {
	const key = "key-0123456789abcdef"
	keys, err := access.KeysFile(testca.Write(t, t.TempDir(), "keys", []byte(key)), nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		path          string
		keys          *access.Keys
		shown         string
		status        int
		says, saysNot string
	}{
		{"/", nil, "", 200, "127.0.0.1:1337", "key"},
		{"/admin/ping", nil, "", 200, "PONG", "key"},
		{"/", keys, "", 401, "Unauthorized", "1337"},
		{"/admin/ping", keys, "", 401, "Unauthorized", "PONG"},
		{"/admin/ping", keys, key[1:], 401, "Unauthorized", "PONG"},
		{"/", keys, key, 200, "127.0.0.1:1337", "Unauthorized"},
		{"/admin/ping", keys, key, 200, "PONG", "Unauthorized"},
		{"/health", keys, "", 200, "ok", "Unauthorized"},
	} {
		w, r := httptest.NewRecorder(), httptest.NewRequest("GET", tt.path, nil)
		if tt.shown != "" {
			r.Header.Set("Authorization", "Bearer "+tt.shown)
		}
		Handler(nothing{}, tt.keys).ServeHTTP(w, r)
		if body := w.Body.String(); w.Code != tt.status || !strings.Contains(body, tt.says) || strings.Contains(body, tt.saysNot) {
			t.Errorf("%s with %q: %d %s", tt.path, tt.shown, w.Code, body)
		}
	}
}
