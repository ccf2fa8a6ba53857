//go:build system

package main

import (
	"strings"
	"testing"
)

func TestDoctorOfCluster(t *testing.T) {
	nowhere := "[redis]\naddrs = [\"127.0.0.1:1\"]\n[influxdb]\nurl = \"http://127.0.0.1:1\"\n"
	if out, _, ok := examine(t, nowhere); ok || !strings.Contains(out, "\nredis ") || !strings.Contains(out, "\ninfluxdb ") || strings.Contains(out, "gateway.addr") {
		t.Errorf("got %s", out)
	}
	if out, said, ok := examine(t, anyPorts+nowhere, "--local"); !ok || strings.Contains(out, "redis") {
		t.Errorf("got %s%s", out, said)
	}
}
