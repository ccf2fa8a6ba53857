package load

import (
	"math"
	"strings"
	"testing"
	"time"
)

func TestConfigRefuses(t *testing.T) {
	good := Config{Body: Cycle([]byte("a")), Rate: 1, Duration: time.Second}
	if _, err := good.complete(); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		says  string
		spoil func(*Config)
	}{
		{"rate", func(c *Config) { c.Rate = 0 }},
		{"rate", func(c *Config) { c.Rate = -1 }},
		{"rate", func(c *Config) { c.Rate = math.NaN() }},
		{"rate", func(c *Config) { c.Rate = math.Inf(1) }},
		{"duration", func(c *Config) { c.Duration = 0 }},
		{"duration", func(c *Config) { c.Duration = 2 * time.Hour }},
		{"timeout", func(c *Config) { c.Timeout = -1 }},
		{"connections", func(c *Config) { c.Connections = -1 }},
		{"connections", func(c *Config) { c.Connections = 5000 }},
		{"body", func(c *Config) { c.Body = nil }},
	} {
		bad := good
		c.spoil(&bad)
		if _, err := bad.complete(); err == nil || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%+v: error %v, want one about the %s", bad, err, c.says)
		}
	}
}

func TestCycle(t *testing.T) {
	body := Cycle([]byte("a"), []byte("b"))
	for i, want := range []string{"a", "b", "a"} {
		if got := string(body(i)); got != want {
			t.Errorf("body %d is %q, want %q", i, got, want)
		}
	}
}

func TestParseTarget(t *testing.T) {
	got, err := parseTarget("http://localhost/app/predict?x=1")
	want := target{"localhost:80", "POST /app/predict?x=1 HTTP/1.1\r\nHost: localhost\r\n" +
		"Content-Type: application/json\r\nContent-Length: "}
	if err != nil || got != want {
		t.Errorf("got %q, %v; want %q", got, err, want)
	}
	for _, text := range []string{"https://localhost/", "localhost:1337", "http://", "http://a b/", ""} {
		if _, err := parseTarget(text); err == nil {
			t.Errorf("url %q was accepted", text)
		}
	}
}
