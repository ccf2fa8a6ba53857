package cluster

import (
	"testing"

	"topsail/internal/redisstore"
)

func TestRedisURL(t *testing.T) {
	for text, want := range map[string]struct {
		addr, user, password string
		secured, wrong       bool
	}{
		"redis://host":                {addr: "host:6379"},
		"redis://host:1":              {addr: "host:1"},
		"redis://ada:secret@host:1/0": {addr: "host:1", user: "ada", password: "secret"},
		"rediss://:secret@[::1]:1":    {addr: "[::1]:1", password: "secret", secured: true},
		"host:1":                      {wrong: true},
		"http://host":                 {wrong: true},
		"redis://":                    {wrong: true},
		"redis://a:pass%word@host":    {wrong: true},
	} {
		var cfg redisstore.Config
		secured, err := fromURL(&cfg, text)
		if want.wrong {
			if err == nil {
				t.Errorf("%s is taken for %+v", text, cfg)
			}
			continue
		}
		password := ""
		if cfg.Password != nil {
			password, _ = cfg.Password()
		}
		if err != nil || cfg.Addrs[0] != want.addr || cfg.Username != want.user || password != want.password || secured != want.secured {
			t.Errorf("%s: got %v, %q, %q, %v, %v", text, cfg.Addrs, cfg.Username, password, secured, err)
		}
	}
}

func TestModels(t *testing.T) {
	good := `[{"model":"m","version":"1","input_type":"doubles"}]`
	if models, err := parseModels(good); err != nil || len(models) != 1 || models[0].String() != "m:1" {
		t.Errorf("got %v, %v", models, err)
	}
	for _, bad := range []string{"", "[]", "null", "[null]", "{}", `[{"model":"M","version":"1","input_type":"doubles"}]`, `[{"model":"m"`} {
		if models, err := parseModels(bad); err == nil {
			t.Errorf("%q is taken for %v", bad, models)
		}
	}
}
