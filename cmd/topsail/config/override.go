package config

import (
	"fmt"
	"math"
	"reflect"
	"slices"
	"strings"
)

const (
	envPrefix     = "TOPSAIL_"
	envFile       = envPrefix + "CONFIG" // names the file
	sourceDefault = "default"
)

// forContainers are the variables that a sidecar's job gives to its container,
// where they may reach a topsail command.
var forContainers = []string{"TOPSAIL_SIDECAR", "TOPSAIL_TOKEN", "TOPSAIL_TOKEN_FILE", "TOPSAIL_MODEL", "TOPSAIL_VERSION", "TOPSAIL_INPUT_TYPE", "TOPSAIL_INPUT_LENGTH", "TOPSAIL_STAGES", "TOPSAIL_REPLICA", "TOPSAIL_PMML_JAR"}

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

// warnings names the variables that look like settings and are none.
func (env environment) warnings() []string {
	known := []string{envFile, "TOPSAIL_URL", "TOPSAIL_ADMIN_URL", "TOPSAIL_API_KEY", "TOPSAIL_API_KEY_FILE"} // the last are of those who ask
	for _, k := range options() {
		known = append(known, k.Env)
	}
	known = append(known, forContainers...)
	var all []string
	for _, name := range keys(env) {
		if strings.HasPrefix(name, envPrefix) && !slices.Contains(known, name) {
			all = append(all, fmt.Sprintf("variable %s is not a setting%s", name, didYouMean(name, known)))
		}
	}
	return all
}

// defaults fills the struct dst with the defaults of its keys.
func (l *loader) defaults(prefix string, dst reflect.Value) {
	for _, k := range leaves(prefix, dst.Type()) {
		if k.Default != "" {
			l.override(k, dst, k.Default, sourceDefault)
		}
	}
}

func (l *loader) environment(env environment) {
	dst := reflect.ValueOf(&l.doc.Options).Elem()
	for _, k := range options() {
		if text, ok := env[k.Env]; ok {
			l.override(k, dst, text, "environment "+k.Env)
		}
	}
}

func (l *loader) flags(flags map[string]string) {
	dst := reflect.ValueOf(&l.doc.Options).Elem()
	all := options()
	for _, name := range keys(flags) {
		i := slices.IndexFunc(all, func(k leaf) bool { return k.Flag == name })
		if i < 0 {
			l.refuse(fmt.Errorf("flag --%s is not a setting", name))
			continue
		}
		l.override(all[i], dst, flags[name], "flag --"+name)
	}
}

// override sets one key of the struct root to a text that did not come from the file.
func (l *loader) override(k leaf, root reflect.Value, text, source string) {
	l.sources[k.Name] = source
	if err := k.assign(root.FieldByIndex(k.index), parse(text, k.Type)); err != nil {
		l.refuse(fmt.Errorf("%s %w", source, err))
	}
}

// refuse reports a problem outside the file.
func (l *loader) refuse(err error) {
	l.problems = append(l.problems, problem{offset: math.MaxInt, err: err})
}
