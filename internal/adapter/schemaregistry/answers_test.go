package schemaregistry

import (
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/topsail-serving/topsail/stream/mapping"
	"github.com/topsail-serving/topsail/test/require"
)

// TestStrangeAnswers are neither schemas nor the lack of one.
func TestStrangeAnswers(t *testing.T) {
	huge := strings.Repeat("x", maxAnswer)
	for name, one := range map[string]struct {
		status int
		body   string
		bad    bool
	}{
		"an error": {500, `{"error_code": 50001, "message": "store"}`, false}, "a page": {404, "<html>" + huge, false}, "not JSON": {200, "<html>", false},
		"huge": {200, `{"schema": "` + huge + `"}`, false}, "unknown type": {200, `{"schema": "x", "schemaType": "THRIFT"}`, false},
	} {
		r := answers(t, func(string) (int, string) { return one.status, one.body })
		_, err := r.Schema(t.Context(), 1)
		if err == nil || errors.Is(err, mapping.ErrUnknownSchema) || errors.Is(err, mapping.ErrBadSchema) != one.bad || len(err.Error()) > 1000 {
			t.Errorf("%s: %.2000v", name, err)
		}
	}
}

// answers is a registry that says what a test wants.
func answers(t *testing.T, answer func(path string) (status int, body string)) *Registry {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		status, body := answer(r.URL.Path)
		w.WriteHeader(status)
		fmt.Fprint(w, body)
	}))
	t.Cleanup(server.Close)
	return open(t, Options{URL: server.URL})
}

func open(t *testing.T, opt Options) *Registry {
	t.Helper()
	r, err := New(opt)
	require.NoError(t, err)
	return r
}
