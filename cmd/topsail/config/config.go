// Package config is the configuration of the topsail binary: the defaults, one
// TOML file, the environment, and flags, each before the next. It checks all of
// it at once, knows where every value came from, and hands out plain values.
//
// The keys, their flags, variables, defaults and help texts are the fields of structs and
// their tags, as package schema reads them: Options, serving.App, serving.Version, Stream
// and ModelStream.
package config

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	"github.com/topsail-serving/topsail/serving"
)

// Config is a whole configuration that passed its checks.
type Config struct {
	Options
	File         string             // the file that was read, as it was named; empty when there was none
	Apps         []*serving.App     // in the order of the file
	Versions     []*serving.Version // in the order of the file
	Current      map[string]string  // the current version of every model in Versions
	Streams      []*Stream          // in the order of the file
	ModelStreams []*ModelStream     // the same
	Warnings     []string           // for the log: variables that look like settings and are not

	settings []Setting
}

// Load reads the file at path, or without a path the one that TOPSAIL_CONFIG
// names, or else topsail.toml in the current folder if there is one. The
// variables in environ (as of os.Environ; an empty one counts as unset) replace
// values of the file, and flags, by their names without dashes, replace both.
//
// The error lists all that is wrong, one line each, the file's with line and column.
func Load(path string, environ []string, flags map[string]string) (*Config, error) {
	env := parseEnviron(environ)
	f, err := openFile(path, env)
	if err != nil {
		return nil, err
	}
	return load(f, env, flags)
}

func load(f *file, env environment, flags map[string]string) (*Config, error) {
	l := &loader{file: f, sources: map[string]string{}, named: map[string]string{}}
	l.tree(f.tree, &l.doc)
	l.environment(env)
	l.flags(flags)
	l.dataDir(env)
	l.listeners()
	c := &Config{
		Options:      l.doc.Options,
		File:         f.path,
		Apps:         l.apps(),
		Versions:     l.versions(),
		Current:      l.current(),
		Streams:      l.streams(),
		ModelStreams: l.modelStreams(),
		Warnings:     env.warnings(),
	}
	l.links(c)
	l.servedStreams()
	c.settings = l.settings()
	if err := l.err(); err != nil {
		return nil, err
	}
	return c, nil
}

// Objects are the apps and versions, as a store takes them.
func (c *Config) Objects() ([]serving.App, []serving.Version) {
	apps, versions := make([]serving.App, len(c.Apps)), make([]serving.Version, len(c.Versions))
	for i, a := range c.Apps {
		apps[i] = *a
	}
	for i, v := range c.Versions {
		versions[i] = *v
	}
	return apps, versions
}

// loader fills a document from its layers and remembers what it saw.
type loader struct {
	file     *file
	doc      document
	sources  map[string]string // by the path of the key
	named    map[string]string // streams of both kinds, and their paths
	problems []problem
}

// document is the file as it is written.
type document struct {
	Options
	App         []serving.App `toml:"app"`
	Model       []modelTable  `toml:"model"`
	Stream      []Stream      `toml:"stream"`
	ModelStream []ModelStream `toml:"model_stream"`
}

// problem is one thing that is wrong. Those of the file come first, in its order.
type problem struct {
	path   string // of the key in the file; empty for variables and flags
	offset int    // in the file
	err    error
}

// wrong reports a problem with the key at path, or with the table at path.
func (l *loader) wrong(path, format string, args ...any) {
	offset := l.file.offset(path)
	err := fmt.Errorf("%s: %w", l.file.position(offset), fmt.Errorf(format, args...))
	l.problems = append(l.problems, problem{path, offset, err})
}

func (l *loader) err() error {
	slices.SortStableFunc(l.problems, func(a, b problem) int { return cmp.Compare(a.offset, b.offset) })
	var errs []error
	for _, p := range l.problems {
		errs = append(errs, p.err)
	}
	return errors.Join(errs...)
}
