package config

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
)

func show(v any) string {
	b, err := json.Marshal(v)
	if err != nil {
		return err.Error()
	}
	return string(b)
}

func TestSettings(t *testing.T) {
	environ := []string{"TOPSAIL_WEB_ADDR=127.0.0.1:1", "TOPSAIL_LOG_LEVEL=warn", "HOME=/home/ada"}
	flags := map[string]string{"log-level": "error", "gateway-drain-timeout-micros": "1"}
	c := mustLoad(t, readTestdata(t, "topsail.toml"), environ, flags)
	var b strings.Builder
	for _, s := range c.Settings() {
		fmt.Fprintf(&b, "%s = %s (%s)\n", s.Name, s.Value, s.Source)
	}
	if got, want := b.String(), readTestdata(t, "settings.golden"); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	if strings.Contains(b.String(), "hunter2") {
		t.Error("a secret is shown")
	}
}
