package access

import (
	"strings"
	"testing"
)

func TestGuard(t *testing.T) {
	for _, tt := range []struct {
		addr              string
		closed, encrypted bool
		says              string // "": may be served
	}{
		{"127.0.0.1:1337", false, false, ""},
		{"127.8.9.1:0", false, false, ""},
		{"[::1]:1337", false, false, ""},
		{"[::ffff:127.0.0.1]:1337", false, false, ""},
		{"localhost:1337", false, false, ""},
		{"10.0.0.1:1337", true, true, ""},
		{":1337", true, true, ""},
		{":1337", false, false, "set gateway.keys_file"},
		{"0.0.0.0:1337", false, true, "set gateway.keys_file"},
		{"[::]:1337", true, false, "set tls.cert_file"},
		{"10.0.0.1:1337", true, false, "set tls.cert_file"},
		{"localhost.example:1337", false, true, "set gateway.keys_file"},
		{"127.0.0.1.example:1337", false, true, "set gateway.keys_file"},
		{"127.0.0.1", false, true, "set gateway.keys_file"},
		{"", false, true, "set gateway.keys_file"},
	} {
		err := Guard(Listener{Setting: "gateway.addr", Addr: tt.addr, Closed: tt.closed, Encrypted: tt.encrypted, How: "gateway.keys_file"})
		switch {
		case tt.says == "" && err != nil:
			t.Errorf("%s, closed %v, encrypted %v: %v", tt.addr, tt.closed, tt.encrypted, err)
		case tt.says != "" && (err == nil || !strings.Contains(err.Error(), tt.says) || !strings.HasPrefix(err.Error(), "gateway.addr is")):
			t.Errorf("%s, closed %v, encrypted %v: %v, want %q", tt.addr, tt.closed, tt.encrypted, err, tt.says)
		}
	}
}
