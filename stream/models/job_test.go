package models

import (
	"strings"
	"testing"

	"github.com/topsail-serving/topsail/stream"
)

func TestCheck(t *testing.T) {
	good := Config{Config: stream.Config{Name: "m", Output: "out", DeadLetter: "dead", Streams: []string{"in"}}}
	if err := good.Check(); err != nil {
		t.Error(err)
	}
	for want, change := range map[string]func(*Config){
		"needs a name":            func(c *Config) { c.Name = "" },
		"needs an output":         func(c *Config) { c.Output = "" },
		"needs a dead_letter":     func(c *Config) { c.DeadLetter = "" },
		"dead_letter is an input": func(c *Config) { c.DeadLetter = "in" },
		"output is an input":      func(c *Config) { c.Output = "in" },
		"locations: ":             func(c *Config) { c.Locations.Prefixes = []string{"http://user@host/"} },
		"python is":               func(c *Config) { c.Python = "2.7" },
		"negative":                func(c *Config) { c.MaxModel = -1 },
	} {
		c := good
		change(&c)
		if err := c.Check(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
	if _, err := New(good); err == nil || !strings.Contains(err.Error(), "needs a consumer") {
		t.Errorf("%v", err)
	}
}
