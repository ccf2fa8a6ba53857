package config

import (
	"errors"
	"strings"
	"testing"

	"github.com/topsail-serving/topsail/serving"
	"github.com/topsail-serving/topsail/test/require"
)

// FuzzLoad holds that no text makes load panic, that what it accepts passes the
// checks of the domain, and that its errors stand where the text is.
func FuzzLoad(f *testing.F) {
	f.Add(readTestdata(f, "topsail.toml"))
	f.Add(readTestdata(f, "policies.toml"))
	f.Add(readTestdata(f, "streams.toml"))
	f.Add(readTestdata(f, "stages.toml"))
	for _, test := range strings.Split(readTestdata(f, "errors.txt"), "=== ")[1:] {
		_, text, _ := strings.Cut(test, "\n")
		text, _, _ = strings.Cut(text, "---\n")
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		file, err := parseFile("topsail.toml", "/etc/topsail", []byte(text))
		if err != nil {
			return
		}
		for path, offset := range file.offsets {
			if offset < 0 || offset >= len(text) {
				t.Fatalf("%s stands at %d of %d", path, offset, len(text))
			}
		}
		c, err := load(file, parseEnviron(user), nil)
		if err != nil {
			return
		}
		for _, s := range c.Settings() {
			if s.Source != sourceDefault && !strings.HasPrefix(s.Source, "topsail.toml:") {
				t.Fatalf("%s comes from %q", s.Name, s.Source)
			}
		}
		require.NoError(t, checkAll(c))
	})
}

// checkAll runs the domain's checks on c and on the catalog that it makes.
func checkAll(c *Config) error {
	var errs []error
	all := serving.Catalog{Apps: map[string]*serving.App{}, Models: map[string]*serving.Model{}}
	for _, a := range c.Apps {
		errs = append(errs, a.Check())
		all.Apps[a.Name] = a
	}
	for _, v := range c.Versions {
		errs = append(errs, v.Check())
		if all.Models[v.Model] == nil {
			all.Models[v.Model] = &serving.Model{Name: v.Model, Current: c.Current[v.Model], Versions: map[string]*serving.Version{}}
		}
		all.Models[v.Model].Versions[v.Version] = v
	}
	return errors.Join(append(errs, all.Check())...)
}
