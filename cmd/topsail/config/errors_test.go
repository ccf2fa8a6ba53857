package config

import (
	"strings"
	"testing"
)

// TestBadFiles runs testdata/errors.txt: after "=== name" a file, and after
// "---" the whole error.
func TestBadFiles(t *testing.T) {
	cases := strings.Split(readTestdata(t, "errors.txt"), "=== ")[1:]
	for _, test := range cases {
		name, rest, _ := strings.Cut(test, "\n")
		text, want, _ := strings.Cut(rest, "---\n")
		t.Run(name, func(t *testing.T) { fails(t, text, user, nil, strings.TrimSuffix(want, "\n")) })
	}
}

func fails(t *testing.T, text string, environ []string, flags map[string]string, want string) {
	t.Helper()
	c, err := loadText(text, environ, flags)
	if err == nil || c != nil {
		t.Fatalf("got %+v, %v, want an error only", c, err)
	}
	if err.Error() != want {
		t.Errorf("got\n%v\nwant\n%s", err, want)
	}
}

func TestBadVariablesAndFlags(t *testing.T) {
	environ := append(user,
		"TOPSAIL_GATEWAY_MAX_BATCH=many",
		"TOPSAIL_WEB_ADDR=10.0.0.1:1338",
		"TOPSAIL_LOG_LEVEL=loud",
	)
	flags := map[string]string{
		"gateway-cache-bytes": "-1",
		"gateway-addr":        "",
		"gatway-addr":         "127.0.0.1:1",
	}
	fails(t, "[log]\nformat = 'x'\n", environ, flags, `topsail.toml:2:1: log.format must be one of auto, text, json, not "x"
environment TOPSAIL_GATEWAY_MAX_BATCH must be an integer, not a string
environment TOPSAIL_LOG_LEVEL must be one of debug, info, warn, error, not "loud"
flag --gateway-addr must be host:port, such as 127.0.0.1:7001, not ""
flag --gateway-cache-bytes must be at least 0, not -1
flag --gatway-addr is not a setting
web.addr is "10.0.0.1:1338", which is not a loopback address, and anyone could use it: set web.keys_file or web.require_keys, or web.require_client_cert with tls.ca_file
web.addr is "10.0.0.1:1338", which is not a loopback address, and nothing encrypts what is sent there: set tls.cert_file and tls.key_file, or tls.external when a proxy or a mesh does`)
}

func TestNoPlaceForData(t *testing.T) {
	fails(t, "", []string{"HOME=", "XDG_STATE_HOME=relative"}, nil,
		"data_dir has no default, because neither XDG_STATE_HOME nor HOME is set: set TOPSAIL_DATA_DIR")
}
