package config

import (
	"strings"
	"testing"
)

func TestKeys(t *testing.T) {
	all := Keys()
	got := all[1]
	want := Key{
		Name:    "gateway.addr",
		Flag:    "gateway-addr",
		Env:     "TOPSAIL_GATEWAY_ADDR",
		Type:    "string",
		Default: "127.0.0.1:1337",
		Help:    "address for queries and feedback",
	}
	if got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
	names := map[string]bool{}
	for _, k := range all {
		inList := strings.HasPrefix(k.Name, "app.") || strings.HasPrefix(k.Name, "model.") || strings.HasPrefix(k.Name, "stream.") || strings.HasPrefix(k.Name, "model_stream.")
		if (k.Flag == "") != inList || (k.Env == "") != inList {
			t.Errorf("%s has flag %q and variable %q", k.Name, k.Flag, k.Env)
		}
		if k.Help == "" || k.Type == "" || strings.Contains(k.Help, "\n") {
			t.Errorf("%s has type %q and help %q", k.Name, k.Type, k.Help)
		}
		if names[k.Name] || k.Flag != "" && names["--"+k.Flag] {
			t.Errorf("%s or its flag is there twice", k.Name)
		}
		names[k.Name], names["--"+k.Flag] = true, true
	}
}

func TestTypes(t *testing.T) {
	types := map[string]string{}
	for _, k := range Keys() {
		types[k.Name] = k.Type
	}
	for name, want := range map[string]string{
		"gateway.drain_timeout_micros": "integer",
		"app.input_type":               "string",
		"app.cache.off":                "boolean",
		"app.cache.round":              "float",
		"model.command":                "list of strings",
		"model.env":                    "table of strings",
		"app.policy.costs":             "table of numbers",
		"app.policy.fallback":          "table",
	} {
		if types[name] != want {
			t.Errorf("%s is of type %q, want %q", name, types[name], want)
		}
	}
}
