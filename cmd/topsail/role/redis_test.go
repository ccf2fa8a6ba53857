package role

import (
	"testing"

	"github.com/topsail-serving/topsail/internal/adapter/redisclient"
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
		var r redisclient.Server
		secured, err := fromURL(&r, text)
		if want.wrong {
			if err == nil {
				t.Errorf("%s is taken for %+v", text, r)
			}
			continue
		}
		password := ""
		if r.Password != nil {
			password, _ = r.Password()
		}
		if err != nil || r.Addrs[0] != want.addr || r.Username != want.user || password != want.password || secured != want.secured {
			t.Errorf("%s: got %v, %q, %q, %v, %v", text, r.Addrs, r.Username, password, secured, err)
		}
	}
}
