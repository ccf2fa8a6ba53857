//go:build unix

package launch

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"

	"github.com/topsail-serving/topsail/serving/bundle"
)

const (
	jarName     = "topsail-pmml.jar" // evaluates PMML models
	jarVariable = "TOPSAIL_PMML_JAR" // says where it is
	oldestJava  = 17
	usualHeap   = "256m" // of Java
)

// pmmlImage runs the bundle's model in Java.
func (o *Options) pmmlImage(m *bundle.Manifest, dir string) (Image, error) {
	jar, err := o.findJar()
	if err != nil {
		return Image{}, err
	}
	java, err := o.findJava()
	if err != nil {
		return Image{}, err
	}
	environ := o.Environ
	if m.InputType != 0 && variable(environ, "TOPSAIL_INPUT_TYPE") == "" { // the version may say more than the bundle
		environ = with(environ, "TOPSAIL_INPUT_TYPE", m.InputType.String())
	}
	if m.InputLength > 0 && variable(environ, "TOPSAIL_INPUT_LENGTH") == "" {
		environ = with(environ, "TOPSAIL_INPUT_LENGTH", strconv.Itoa(m.InputLength))
	}
	if m.Signature != nil && variable(environ, "TOPSAIL_SIGNATURE") == "" {
		environ = with(environ, "TOPSAIL_SIGNATURE", m.Signature.JSON())
	}
	heap := "-Xmx" + cmp.Or(m.Options[bundle.HeapOption], usualHeap)
	model := filepath.Join(dir, filepath.FromSlash(m.Entry))
	return Image{Path: java, Args: []string{java, "-XX:+UseSerialGC", heap, "-jar", jar, model}, Env: environ, Dir: dir}, nil
}

func (o *Options) findJar() (string, error) {
	if named := variable(o.Environ, jarVariable); named != "" {
		return isThere(named, jarVariable+" names")
	}
	if o.Beside == "" {
		return "", fmt.Errorf("this bundle needs %s: set %s to its path", jarName, jarVariable)
	}
	return isThere(filepath.Join(o.Beside, jarName), jarVariable+" is not set, and this program looks for it at")
}

func isThere(jar, why string) (string, error) {
	info, err := os.Stat(jar)
	if err == nil && info.IsDir() {
		err = errors.New("it is a folder")
	}
	if err != nil {
		return "", fmt.Errorf("this bundle needs %s, which evaluates PMML models. %s %s: %w. Build it with make pmml, and put it there",
			jarName, why, jar, err)
	}
	return filepath.Abs(jar)
}

// findJava is the Java of JAVA_HOME, else of PATH.
func (o *Options) findJava() (string, error) {
	dirs := filepath.SplitList(variable(o.Environ, "PATH"))
	if home := variable(o.Environ, "JAVA_HOME"); home != "" {
		dirs = append([]string{filepath.Join(home, "bin")}, dirs...)
	}
	java, ok := findProgram("java", dirs)
	if !ok {
		return "", fmt.Errorf("this bundle needs Java %d or later, and neither JAVA_HOME nor PATH has one: "+
			"install it on this node; on Debian: default-jre-headless", oldestJava)
	}
	if version, ok := javaVersion(java); ok && version < oldestJava {
		return "", fmt.Errorf("this bundle needs Java %d or later, and %s is Java %d: install a later one on this node, or set JAVA_HOME to it",
			oldestJava, java, version)
	}
	return java, nil
}

// release is the line of a Java's file "release" that has its version: 17.0.2 is 17, and
// 1.8.0 is 8.
var release = regexp.MustCompile(`(?m)^JAVA_VERSION="(?:1\.)?([0-9]{1,4})`)

// javaVersion is the version that an installation says that it has, if it does. Asking the
// program itself would take as long as half of a model's start.
func javaVersion(java string) (version int, ok bool) {
	real, err := filepath.EvalSymlinks(java)
	if err != nil {
		return 0, false
	}
	text, err := os.ReadFile(filepath.Join(filepath.Dir(filepath.Dir(real)), "release"))
	found := release.FindSubmatch(text)
	if err != nil || found == nil {
		return 0, false
	}
	version, err = strconv.Atoi(string(found[1]))
	return version, err == nil
}
