package config

import (
	"fmt"
	"math"
	"reflect"
	"slices"
	"strings"

	"github.com/topsail-serving/topsail/internal/schema"
)

const (
	envPrefix     = "TOPSAIL_"
	envFile       = envPrefix + "CONFIG" // names the file
	sourceDefault = "default"
)

// forContainers are the variables that a sidecar's job gives to its container,
// where they may reach a topsail command.
var forContainers = []string{"TOPSAIL_SIDECAR", "TOPSAIL_TOKEN", "TOPSAIL_TOKEN_FILE", "TOPSAIL_MODEL", "TOPSAIL_VERSION", "TOPSAIL_INPUT_TYPE", "TOPSAIL_INPUT_LENGTH", "TOPSAIL_SIGNATURE", "TOPSAIL_SESSION", "TOPSAIL_STAGES", "TOPSAIL_REPLICA", "TOPSAIL_PMML_JAR"}

// environment holds the variables that are set and not empty.
type environment map[string]string

func parseEnviron(environ []string) environment {
	env := environment{}
	for _, entry := range environ {
		if name, value, _ := strings.Cut(entry, "="); value != "" {
			env[name] = value
		}
	}
	return env
}

// warnings names the variables that look like settings and are not.
func (env environment) warnings() []string {
	known := []string{envFile, "TOPSAIL_URL", "TOPSAIL_ADMIN_URL", "TOPSAIL_API_KEY", "TOPSAIL_API_KEY_FILE"} // the last are of the client commands
	for _, k := range options() {
		known = append(known, k.Env)
	}
	known = append(known, forContainers...)
	var all []string
	for _, name := range keys(env) {
		if strings.HasPrefix(name, envPrefix) && !slices.Contains(known, name) {
			all = append(all, fmt.Sprintf("variable %s is not a setting%s", name, schema.DidYouMean(name, known)))
		}
	}
	return all
}

func (l *loader) environment(env environment) {
	for _, k := range options() {
		if text, ok := env[k.Env]; ok {
			l.override(k, text, "environment "+k.Env)
		}
	}
}

func (l *loader) flags(flags map[string]string) {
	all := options()
	for _, name := range keys(flags) {
		i := slices.IndexFunc(all, func(k leaf) bool { return k.Flag == name })
		if i < 0 {
			l.refuse(fmt.Errorf("flag --%s is not a setting", name))
			continue
		}
		l.override(all[i], flags[name], "flag --"+name)
	}
}

// override sets one option to a text that did not come from the file.
func (l *loader) override(k leaf, text, source string) {
	l.sources[k.Name] = source
	tree := schema.Parse(text, k.field.Type)
	for _, part := range slices.Backward(strings.Split(k.Name, ".")) {
		tree = map[string]any{part: tree}
	}
	d := schema.Decoder{Syntax: schema.TOML, Partial: true, Set: func(_ string, f schema.Field, dst reflect.Value) {
		if use := f.Tag.Get("addr"); use != "" {
			if err := checkAddr(dst.String(), use); err != nil {
				l.refuse(fmt.Errorf("%s %w", source, err))
			}
		}
	}}
	for _, p := range d.Decode("", tree, &l.doc.Options) {
		l.refuse(fmt.Errorf("%s %s", source, p.Text))
	}
}

// refuse reports a problem outside the file.
func (l *loader) refuse(err error) {
	l.problems = append(l.problems, problem{offset: math.MaxInt, err: err})
}
