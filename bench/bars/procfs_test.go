package main

import (
	"strings"
	"testing"
	"time"
)

func TestParseStat(t *testing.T) {
	const fields = " S 1 2 3 4 5 6 7 8 9 10 123 45 0 0 20 0 5 0 99 1000 20"
	for _, name := range []string{"(bench)", "(a b)", "(a) R 1 (b)"} {
		got, err := parseStat([]byte("4242 " + name + fields))
		if want := 1680 * time.Millisecond; err != nil || got != want {
			t.Errorf("%s: got %v, %v; want %v", name, got, err, want)
		}
	}
	for _, bad := range []string{"", "4242", "4242 (bench) S 1 2", "4242 (bench)" + strings.Replace(fields, "123", "x", 1), "4242 (bench)" + strings.Replace(fields, "45", "x", 1)} {
		if got, err := parseStat([]byte(bad)); err == nil {
			t.Errorf("%q was read as %v", bad, got)
		}
	}
}

func TestParseStatm(t *testing.T) {
	if got, err := parseStatm([]byte("765 441 413 5 0 123 0\n")); err != nil || got != 441 {
		t.Errorf("got %d, %v; want 441", got, err)
	}
	for _, bad := range []string{"", "765", "765 x 413"} {
		if got, err := parseStatm([]byte(bad)); err == nil {
			t.Errorf("%q was read as %d", bad, got)
		}
	}
}
