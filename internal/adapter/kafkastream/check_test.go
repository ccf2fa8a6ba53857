package kafkastream

import (
	"log/slog"
	"strings"
	"testing"
)

func TestCheck(t *testing.T) {
	good := Broker{Addrs: []string{"127.0.0.1:1"}, Log: logger(t)}
	group := Group{Name: "group", Member: "a", Streams: []string{"s"}}
	secret := func() (string, error) { return "secret", nil }
	for want, change := range map[string]func(*Broker, *Group){
		"needs an address": func(b *Broker, _ *Group) { b.Addrs = nil },
		"no mechanism":     func(b *Broker, _ *Group) { b.Username = "u" },
		"and a password":   func(b *Broker, _ *Group) { b.Mechanism, b.Username = "PLAIN", "u" },
		"is none of PLAIN": func(b *Broker, _ *Group) { b.Mechanism, b.Username, b.Password = "OTHER", "u", secret },
		"shows the password": func(b *Broker, _ *Group) {
			b.Addrs, b.Mechanism, b.Username, b.Password = []string{"kafka:1"}, "PLAIN", "u", secret
		},
		"needs a name":         func(_ *Broker, g *Group) { g.Name = "" },
		"its member one":       func(_ *Broker, g *Group) { g.Member = "" },
		"without slashes":      func(_ *Broker, g *Group) { g.Member = "a/b" },
		"needs topics":         func(_ *Broker, g *Group) { g.Streams = nil },
		"cannot be silent for": func(_ *Broker, g *Group) { g.Takeover = -1 },
	} {
		b, g := good, group
		change(&b, &g)
		if c, err := Join(b, g); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, error %v, want %q", c, err, want)
		}
	}
}

func logger(t testing.TB) *slog.Logger {
	return slog.New(slog.NewTextHandler(t.Output(), nil))
}
