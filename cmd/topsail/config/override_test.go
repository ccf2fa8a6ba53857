package config

import (
	"slices"
	"strings"
	"testing"
)

func TestPrecedence(t *testing.T) {
	const text = "[log]\nlevel = 'warn'\n"
	variable := append([]string{"TOPSAIL_LOG_LEVEL=error"}, user...)
	flag := map[string]string{"log-level": "debug"}
	for _, test := range []struct {
		text          string
		environ       []string
		flags         map[string]string
		value, source string
	}{
		{"", user, nil, "info", "default"},
		{text, user, nil, "warn", "topsail.toml:2"},
		{"log.level = 'info'", user, nil, "info", "topsail.toml:1"}, // said, though it is the default
		{text, append([]string{"TOPSAIL_LOG_LEVEL="}, user...), nil, "warn", "topsail.toml:2"},
		{text, variable, nil, "error", "environment TOPSAIL_LOG_LEVEL"},
		{"", variable, nil, "error", "environment TOPSAIL_LOG_LEVEL"},
		{text, variable, flag, "debug", "flag --log-level"},
		{"", user, flag, "debug", "flag --log-level"},
	} {
		c := mustLoad(t, test.text, test.environ, test.flags)
		s := setting(t, c, "log.level")
		if c.Log.Level != test.value || s.Value != test.value || s.Source != test.source {
			t.Errorf("got %q, shown as %q from %q; want %q from %q", c.Log.Level, s.Value, s.Source, test.value, test.source)
		}
	}
}

func setting(t *testing.T, c *Config, name string) Setting {
	t.Helper()
	all := c.Settings()
	i := slices.IndexFunc(all, func(s Setting) bool { return s.Name == name })
	if i < 0 {
		t.Fatalf("%s is not among the settings", name)
	}
	return all[i]
}

// Every option can be set by its variable and by its flag.
func TestEveryVariableAndFlag(t *testing.T) {
	const whole = "[tls]\ncert_file = 'c'\nkey_file = 'k'\nca_file = 'a'\n" // settings that go together
	for _, k := range Keys() {
		if k.Env == "" {
			continue
		}
		value := map[string]string{
			"log.level": "warn", "log.format": "text", "jobs.driver": "exec",
			"gateway.addr": "127.0.0.1:1", "gateway.grpc_addr": "127.0.0.1:7", "web.addr": "127.0.0.1:2", "ops.addr": "[::1]:3",
			"sidecar.addr": "127.0.0.1:4", "sidecar.containers_addr": "127.0.0.1:5", "sidecar.container_addr": "127.0.0.1:6",
		}[k.Name]
		shown := value
		switch {
		case k.Type == "integer":
			value, shown = "77", "77"
		case k.Type == "boolean":
			value, shown = "true", "true"
		case k.Type == "list of strings":
			value, shown = "a,b", `["a", "b"]`
		case value == "":
			value, shown = "/d", "/d"
		}
		c := mustLoad(t, whole, append([]string{k.Env + "=" + value}, user...), nil)
		if s := setting(t, c, k.Name); s.Value != shown || s.Source != "environment "+k.Env || c.Warnings != nil {
			t.Errorf("%s=%s: got %+v, warnings %q", k.Env, value, s, c.Warnings)
		}
		c = mustLoad(t, whole, user, map[string]string{k.Flag: value})
		if s := setting(t, c, k.Name); s.Value != shown || s.Source != "flag --"+k.Flag {
			t.Errorf("--%s=%s: got %+v", k.Flag, value, s)
		}
	}
}

func TestWarnings(t *testing.T) {
	environ := append([]string{
		"TOPSAIL_ZEBRA=1",
		"TOPSAIL_GATEWAY_ADR=127.0.0.1:1",
		"TOPSAIL_CONFIG=x.toml",
		"TOPSAIL_EMPTY=",
		"TOPSAIL_OPS_ADDR=127.0.0.1:2",
		"NOT_TOPSAIL=1",
		"malformed",
	}, user...)
	got := strings.Join(mustLoad(t, "", environ, nil).Warnings, "\n")
	want := `variable TOPSAIL_GATEWAY_ADR is not a setting: did you mean "TOPSAIL_GATEWAY_ADDR"?
variable TOPSAIL_ZEBRA is not a setting`
	if got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}
