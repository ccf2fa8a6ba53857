//go:build servers

package schemaregistry

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/sr"

	"github.com/topsail-serving/topsail/stream/mapping"
	"github.com/topsail-serving/topsail/test/require"
	"github.com/topsail-serving/topsail/test/servers"
)

const (
	orderV1 = `{"type":"record","name":"Order","fields":[{"name":"id","type":"long"}]}`
	orderV2 = `{"type":"record","name":"Order","fields":[{"name":"id","type":"long"},{"name":"price","type":"double","default":0}]}`
	other   = `{"type":"record","name":"Order","fields":[{"name":"name","type":"string"}]}`
)

// start runs a real registry.
func start(t *testing.T) (server *servers.Server, base string) {
	t.Helper()
	port, err := servers.FreePort()
	require.NoError(t, err)
	server, err = servers.Registry(t.TempDir(), port)
	require.NoError(t, err)
	t.Cleanup(server.Kill)
	if err := server.Start(t.Context()); err != nil {
		t.Fatalf("%v\n%s", err, server.LogTail())
	}
	return server, "http://" + server.Addr + servers.RegistryPath
}

// TestRegistry asks a real one for everything that we ask for.
func TestRegistry(t *testing.T) {
	server, base := start(t)
	r := open(t, Options{URL: base, Agent: "topsail"})
	if res := r.client.SetCompatibility(t.Context(), sr.SetCompatibility{Level: sr.CompatBackward}); res[0].Err != nil {
		t.Fatal(res[0].Err)
	}
	schema := func(text string) mapping.Schema { return mapping.Schema{Format: mapping.Avro, Text: text} }

	if _, err := r.Register(t.Context(), "orders-value", schema(orderV1), false); err == nil || !strings.Contains(err.Error(), "set register = true") {
		t.Errorf("a schema that is not there: %v", err)
	}
	first, err := r.Register(t.Context(), "orders-value", schema(orderV1), true)
	require.NoError(t, err)
	for _, add := range []bool{false, true} {
		if again, err := r.Register(t.Context(), "orders-value", schema(orderV1), add); err != nil || again != first {
			t.Errorf("again it is %d, %v, and was %d", again, err, first)
		}
	}
	second, err := r.Register(t.Context(), "orders-value", schema(orderV2), true)
	if err != nil || second == first {
		t.Errorf("the next one is %d, %v", second, err)
	}
	if _, err := r.Register(t.Context(), "orders-value", schema(other), true); err == nil || !strings.Contains(err.Error(), "not compatible with those that the subject has") {
		t.Errorf("an incompatible one: %v", err)
	}
	if got, err := r.Schema(t.Context(), first); err != nil || got.Format != mapping.Avro || got.Text != orderV1 || len(got.References) != 0 {
		t.Errorf("%+v, %v", got, err)
	}
	if _, err := r.Schema(t.Context(), 1<<30); !errors.Is(err, mapping.ErrUnknownSchema) {
		t.Errorf("an unknown one: %v", err)
	}

	// A schema of protobuf with one that it imports.
	if _, err := r.client.CreateSchema(t.Context(), "customer.proto", sr.Schema{Type: sr.TypeProtobuf, Schema: `syntax = "proto3"; package shop; message Customer { string name = 1; }`}); err != nil {
		t.Fatal(err)
	}
	made, err := r.client.CreateSchema(t.Context(), "shop-value", sr.Schema{
		Type: sr.TypeProtobuf, Schema: `syntax = "proto3"; package shop; import "customer.proto"; message Order { Customer customer = 1; }`,
		References: []sr.SchemaReference{{Name: "customer.proto", Subject: "customer.proto", Version: 1}},
	})
	require.NoError(t, err)
	got, err := r.Schema(t.Context(), made.ID)
	if err != nil || got.Format != mapping.Protobuf || len(got.References) != 1 || got.References[0].Name != "customer.proto" || !strings.Contains(got.References[0].Text, "Customer") {
		t.Errorf("%+v, %v", got, err)
	}

	// Somewhere else on the server is no registry, and unavailable is not unknown.
	elsewhere := open(t, Options{URL: "http://" + server.Addr + "/elsewhere"})
	if _, err := elsewhere.Schema(t.Context(), first); err == nil || errors.Is(err, mapping.ErrUnknownSchema) || !strings.Contains(err.Error(), "check schema_registry") {
		t.Errorf("elsewhere: %v", err)
	}
	server.Kill()
	if _, err := r.Schema(t.Context(), first); err == nil || errors.Is(err, mapping.ErrUnknownSchema) || errors.Is(err, mapping.ErrBadSchema) {
		t.Errorf("without a registry: %v", err)
	}
	if _, err := r.Register(t.Context(), "orders-value", schema(orderV1), true); err == nil {
		t.Error("it is registered nowhere")
	}
}

// TestPassword is shown with each request, as it is then.
func TestPassword(t *testing.T) {
	_, base := start(t)
	target, err := url.Parse(base)
	require.NoError(t, err)
	proxy := httputil.NewSingleHostReverseProxy(target)
	front := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if user, password, _ := r.BasicAuth(); user != "ann" || password != "secret" {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		proxy.ServeHTTP(w, r)
	}))
	defer front.Close()
	password := "old"
	r := open(t, Options{URL: front.URL, Username: "ann", Password: func() (string, error) { return password, nil }})
	if _, err := r.Schema(t.Context(), 1); err == nil || errors.Is(err, mapping.ErrUnknownSchema) || !strings.Contains(err.Error(), "check schema_registry_username") {
		t.Errorf("with a wrong password: %v", err)
	}
	password = "secret"
	if _, err := r.Schema(t.Context(), 1); !errors.Is(err, mapping.ErrUnknownSchema) {
		t.Errorf("with the right one: %v", err)
	}
}

// TestReferences are read once each, and not without end.
func TestReferences(t *testing.T) {
	asked := 0
	schema := func(references ...string) string {
		var all []sr.SchemaReference
		for _, name := range references {
			all = append(all, sr.SchemaReference{Name: name, Subject: name, Version: 1})
		}
		text, err := json.Marshal(map[string]any{"schema": "s", "references": all, "version": 1})
		require.NoError(t, err)
		return string(text)
	}
	r := answers(t, func(path string) (int, string) {
		asked++
		switch {
		case strings.HasSuffix(path, "/ids/1"):
			return 200, schema("a", "b")
		case strings.Contains(path, "/a/"):
			return 200, schema("b")
		case strings.Contains(path, "/b/"):
			return 200, schema("a")
		case strings.HasSuffix(path, "/ids/2"):
			return 200, schema("x")
		case strings.HasSuffix(path, "/ids/3"):
			return 200, schema("missing")
		case strings.Contains(path, "/missing/"):
			return 404, `{"error_code": 40401}`
		}
		return 200, schema(fmt.Sprint(asked))
	})
	got, err := r.Schema(context.Background(), 1)
	if err != nil || len(got.References) != 2 || got.References[0].Name != "b" || asked != 3 {
		t.Errorf("%+v, %v, asked %d times", got, err, asked)
	}
	if _, err := r.Schema(t.Context(), 2); !errors.Is(err, mapping.ErrBadSchema) || !strings.Contains(err.Error(), "more than 64") {
		t.Errorf("without end: %v", err)
	}
	if _, err := r.Schema(t.Context(), 3); !errors.Is(err, mapping.ErrBadSchema) || !strings.Contains(err.Error(), "which is missing") {
		t.Errorf("missing: %v", err)
	}
}
