//go:build unix

package launch

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/topsail-serving/topsail/serving"
	"github.com/topsail-serving/topsail/serving/bundle"
	"github.com/topsail-serving/topsail/test/require"
)

// pmml is a bundle of a PMML model, on a node that has a Java of this version and the jar.
func pmml(t *testing.T, m bundle.Manifest, version string) (o Options, java, jar string) {
	t.Helper()
	home := t.TempDir()
	java, jar = filepath.Join(home, "bin", "java"), filepath.Join(home, jarName)
	write(t, java, "#!/bin/sh\n")
	write(t, jar, "")
	write(t, filepath.Join(home, "release"), "IMPLEMENTOR=\"x\"\nJAVA_VERSION=\""+version+"\"\n")
	m.Runtime, m.Entry = bundle.PMMLRuntime, "models/iris.pmml"
	o = pack(t, m, fstest.MapFS{"models/iris.pmml": {Data: []byte("<PMML/>")}})
	o.SDK, o.Beside = nil, home
	o.Environ = []string{"PATH=" + filepath.Dir(java), "TOPSAIL_SIDECAR=127.0.0.1:7000"}
	return o, java, jar
}

func write(t *testing.T, path, text string) {
	t.Helper()
	require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
	require.NoError(t, os.WriteFile(path, []byte(text), 0o755))
}

func TestRunPMML(t *testing.T) {
	o, java, jar := pmml(t, bundle.Manifest{InputType: serving.Doubles, InputLength: 4}, "17.0.15")
	image := run(t, o)
	want := []string{java, "-XX:+UseSerialGC", "-Xmx256m", "-jar", jar, filepath.Join(image.Dir, "models", "iris.pmml")}
	if image.Path != java || !slices.Equal(image.Args, want) {
		t.Errorf("it becomes %q, want %q", image.Args, want)
	}
	for name, want := range map[string]string{"TOPSAIL_INPUT_TYPE": "doubles", "TOPSAIL_INPUT_LENGTH": "4", "TOPSAIL_SIDECAR": "127.0.0.1:7000"} {
		if got := variable(image.Env, name); got != want {
			t.Errorf("%s is %q, want %q", name, got, want)
		}
	}

	o.Environ = append(o.Environ, "TOPSAIL_INPUT_TYPE=floats", "TOPSAIL_INPUT_LENGTH=2")
	if image := run(t, o); variable(image.Env, "TOPSAIL_INPUT_TYPE") != "floats" || variable(image.Env, "TOPSAIL_INPUT_LENGTH") != "2" {
		t.Errorf("the version says less than the bundle: %q", image.Env)
	}
}

func TestTheSignatureOfPMML(t *testing.T) {
	x := &serving.Signature{Inputs: []serving.Tensor{{Name: "x", Type: serving.ElementType(serving.Float64)}}}
	o, _, _ := pmml(t, bundle.Manifest{Signature: x}, "17")
	if image := run(t, o); variable(image.Env, "TOPSAIL_SIGNATURE") != x.JSON() {
		t.Errorf("the signature is not that of the bundle: %q", image.Env)
	}
	o.Environ = append(o.Environ, "TOPSAIL_SIGNATURE={}")
	if image := run(t, o); variable(image.Env, "TOPSAIL_SIGNATURE") != "{}" {
		t.Errorf("the signature is not that of the version: %q", image.Env)
	}
}

func TestWhatANodeSaysOfPMML(t *testing.T) {
	o, java, _ := pmml(t, bundle.Manifest{Options: map[string]string{"heap": "2g"}}, "21")
	other := filepath.Join(t.TempDir(), "other.jar")
	write(t, other, "")
	o.Environ = []string{"JAVA_HOME=" + filepath.Dir(filepath.Dir(java)), "TOPSAIL_PMML_JAR=" + other}
	if image := run(t, o); image.Path != java || image.Args[2] != "-Xmx2g" || image.Args[4] != other {
		t.Errorf("it becomes %+v", image)
	}
}

func TestANodeThatLacksWhatPMMLNeeds(t *testing.T) {
	for name, c := range map[string]struct {
		version string
		change  func(o *Options, java, jar string)
		want    string
	}{
		"no jar":          {"17", func(_ *Options, _, jar string) { os.Remove(jar) }, "this program looks for it at"},
		"no jar is named": {"17", func(o *Options, _, _ string) { o.Beside = "" }, "set TOPSAIL_PMML_JAR to its path"},
		"the jar is not where it is said": {"17", func(o *Options, _, _ string) {
			o.Environ = append(o.Environ, "TOPSAIL_PMML_JAR=/none.jar")
		}, "TOPSAIL_PMML_JAR names /none.jar: "},
		"the jar is a folder": {"17", func(o *Options, _, _ string) { o.Environ = append(o.Environ, "TOPSAIL_PMML_JAR=/") }, "it is a folder"},
		"no Java":             {"17", func(_ *Options, java, _ string) { os.Remove(java) }, "neither JAVA_HOME nor PATH has one"},
		"an old Java":         {"11.0.2", func(*Options, string, string) {}, "is Java 11: install a later one"},
		"a very old Java":     {"1.8.0_402", func(*Options, string, string) {}, "is Java 8: install a later one"},
	} {
		t.Run(name, func(t *testing.T) {
			o, java, jar := pmml(t, bundle.Manifest{}, c.version)
			c.change(&o, java, jar)
			if text := refused(t, o); !strings.Contains(text, c.want) {
				t.Errorf("it says %q, want %q", text, c.want)
			}
		})
	}
}

// TestAJavaThatSaysNothingIsTried: distributions may leave the file out.
func TestAJavaThatSaysNothingIsTried(t *testing.T) {
	o, java, _ := pmml(t, bundle.Manifest{}, "")
	if image := run(t, o); image.Path != java {
		t.Errorf("it becomes %+v", image)
	}
}
