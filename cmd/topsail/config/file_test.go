package config

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/topsail-serving/topsail/internal/schema"
	"github.com/topsail-serving/topsail/test/require"
)

func write(t *testing.T, path, text string) {
	t.Helper()
	require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
}

func TestWhichFile(t *testing.T) {
	t.Chdir(t.TempDir())
	load := func(path string, environ ...string) *Config {
		t.Helper()
		c, err := Load(path, append(environ, user...), nil)
		require.NoError(t, err)
		return c
	}
	if c := load(""); c.File != "" || c.Gateway.MaxBatch != 4096 {
		t.Errorf("without a file: got file %q, max_batch %d", c.File, c.Gateway.MaxBatch)
	}
	write(t, "topsail.toml", "gateway.max_batch = 1")
	write(t, "variable.toml", "gateway.max_batch = 2")
	write(t, "flag.toml", "gateway.max_batch = 3")
	if c := load(""); c.File != "topsail.toml" || c.Gateway.MaxBatch != 1 {
		t.Errorf("with topsail.toml: got file %q, max_batch %d", c.File, c.Gateway.MaxBatch)
	}
	if c := load("", "TOPSAIL_CONFIG=variable.toml"); c.File != "variable.toml" || c.Gateway.MaxBatch != 2 {
		t.Errorf("with TOPSAIL_CONFIG: got file %q, max_batch %d", c.File, c.Gateway.MaxBatch)
	}
	if c := load("flag.toml", "TOPSAIL_CONFIG=variable.toml"); c.File != "flag.toml" || c.Gateway.MaxBatch != 3 {
		t.Errorf("with both: got file %q, max_batch %d", c.File, c.Gateway.MaxBatch)
	}
}

func TestRelativePathsCountFromTheFile(t *testing.T) {
	work := t.TempDir()
	t.Chdir(work)
	require.NoError(t, os.Mkdir("conf", 0o700))
	write(t, "conf/t.toml", `
data_dir = "d"
[[model]]
name = "m"
version = "1"
input_type = "ints"
command = ["x"]
watch = ["w"]
`)
	c, err := Load("conf/t.toml", user, nil)
	require.NoError(t, err)
	here, err := os.Getwd()
	require.NoError(t, err)
	conf := filepath.Join(here, "conf")
	container := c.Versions[0].Container
	if c.DataDir != filepath.Join(conf, "d") || container.Dir != conf || container.Watch[0] != filepath.Join(conf, "w") {
		t.Errorf("from %s: got data_dir %q, dir %q, watch %q", conf, c.DataDir, container.Dir, container.Watch)
	}
}

func TestUnreadableFiles(t *testing.T) {
	t.Chdir(t.TempDir())
	write(t, "large.toml", strings.Repeat("#", maxFileBytes+1))
	write(t, "bad.toml", "x = 1\n")
	for _, test := range []struct{ path, variable, want string }{
		{"no.toml", "", "open no.toml: no such file or directory: check the path, or name no file to run with the defaults"},
		{"", "no.toml", "open no.toml: no such file or directory: check the path, or name no file to run with the defaults"},
		{"large.toml", "", "configuration: large.toml is larger than 1048576 bytes"},
		{".", "", "configuration: read .: is a directory"},
		{"bad.toml", "", `bad.toml:1:1: x is unknown: use one of ` + strings.Join(schema.Keys(schema.TOML.Fields(reflect.TypeFor[document]())), ", ")},
	} {
		_, err := Load(test.path, append([]string{"TOPSAIL_CONFIG=" + test.variable}, user...), nil)
		if err == nil || err.Error() != test.want {
			t.Errorf("%q, %q: got %v, want %s", test.path, test.variable, err, test.want)
		}
		if errors.Is(err, fs.ErrNotExist) != (test.path == "no.toml" || test.variable == "no.toml") {
			t.Errorf("%q, %q: errors.Is(%v, fs.ErrNotExist)", test.path, test.variable, err)
		}
	}
}

// The places of keys take memory in proportion to the file.
func TestDeepFiles(t *testing.T) {
	for name, text := range map[string]string{
		"dots":   strings.Repeat("a.", 100_000) + "a = 1",
		"tables": "a = " + strings.Repeat("{b=", 5000) + "1" + strings.Repeat("}", 5000),
		"lists":  "a = " + strings.Repeat("[", 5000) + strings.Repeat("]", 5000),
	} {
		f, err := parseFile("topsail.toml", "/etc/topsail", []byte(text))
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		size := 0
		for path := range f.offsets {
			size += len(path)
		}
		if size == 0 || size > 1<<20 {
			t.Errorf("%s: %d bytes of paths", name, size)
		}
	}
}
