//go:build servers

package influxdb

import (
	"strings"
	"testing"
	"time"
)

func TestDiagnose(t *testing.T) {
	t.Parallel()
	url := "http://" + server(t)
	for name, test := range map[string]struct {
		cfg  Config
		want string // of writing; empty: it works
	}{
		"up":        {Config{URL: url, Bucket: database(t, server(t))}, ""},
		"no bucket": {Config{URL: url, Bucket: "nowhere/autogen"}, "nowhere"},
	} {
		d, err := probed(t, test.cfg)
		if err != nil || !strings.HasPrefix(d.Version, "1.8") && d.Version == "" || d.Read != nil {
			t.Errorf("%s: got %+v, error %v", name, d, err)
		}
		if (d.Write == nil) != (test.want == "") || d.Write != nil && !strings.Contains(d.Write.Error(), test.want) {
			t.Errorf("%s: got %v", name, d.Write)
		}
		if d.Ahead == nil || d.Ahead.Abs() > 2*time.Second {
			t.Errorf("%s: the clock of this machine is %v ahead of itself", name, d.Ahead)
		}
	}
	if d, err := probed(t, Config{URL: "http://127.0.0.1:1", Bucket: "x"}); err == nil {
		t.Errorf("nobody answers %+v", d)
	}
}

func probed(t *testing.T, cfg Config) (Diagnosis, error) {
	t.Helper()
	s, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return s.Diagnose(t.Context())
}
