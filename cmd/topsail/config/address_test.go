package config

import "testing"

func TestIsLoopback(t *testing.T) {
	for addr, want := range map[string]bool{
		"127.0.0.1:1337":          true,
		"127.9.9.9:0":             true,
		"[::1]:1337":              true,
		"[::ffff:127.0.0.1]:1337": true,
		"localhost:1337":          true,
		":1337":                   false,
		"0.0.0.0:1337":            false,
		"[::]:1337":               false,
		"10.0.0.1:1337":           false,
		"128.0.0.1:1337":          false,
		"localhost.example:1337":  false,
		"127.0.0.1":               false,
		"::1":                     false,
		"":                        false,
	} {
		if got := IsLoopback(addr); got != want {
			t.Errorf("IsLoopback(%q) = %v", addr, got)
		}
	}
}
