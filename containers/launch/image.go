//go:build unix

package launch

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
)

// Image is what a process becomes.
type Image struct {
	Path string   // of the program, absolute
	Args []string // with the program's own name
	Env  []string
	Dir  string // to work in
}

// Exec replaces this process. It returns only if it cannot.
func (i Image) Exec() error {
	if err := os.Chdir(i.Dir); err != nil {
		return fmt.Errorf("cannot work in the bundle's folder: %w", err)
	}
	if err := syscall.Exec(i.Path, i.Args, i.Env); err != nil {
		return fmt.Errorf("cannot run %s: %w", i.Path, err)
	}
	return nil
}

// commandImage runs the bundle's own command.
func (o *Options) commandImage(command []string, dir string) (Image, error) {
	path := command[0]
	switch {
	case filepath.IsAbs(path):
	case strings.Contains(path, "/"):
		path = filepath.Join(dir, path)
	default:
		found, ok := findProgram(path, filepath.SplitList(variable(o.Environ, "PATH")))
		if !ok {
			return Image{}, fmt.Errorf("the bundle's command is %q, which is not on this node's PATH: install it here, or put it into the bundle", path)
		}
		path = found
	}
	return Image{Path: path, Args: command, Env: o.Environ, Dir: dir}, nil
}

// pythonImage runs a module in the bundle's folder and an environment.
func (o *Options) pythonImage(env environment, sdk, dir string, module ...string) Image {
	path := sdk
	if own := variable(o.Environ, "PYTHONPATH"); own != "" {
		path += string(filepath.ListSeparator) + own
	}
	environ := with(o.Environ, "PYTHONPATH", path)
	environ = with(environ, "PYTHONNOUSERSITE", "1") // packages of one user would be on one node only
	environ = with(environ, "PYTHONUNBUFFERED", "1") // what the model prints is wanted now
	if env.dir != "" {
		environ = with(environ, "VIRTUAL_ENV", env.dir)
		environ = with(environ, "PATH", filepath.Join(env.dir, "bin")+string(filepath.ListSeparator)+variable(o.Environ, "PATH"))
	}
	return Image{Path: env.python, Args: append([]string{env.python, "-m"}, module...), Env: environ, Dir: dir}
}

// findProgram looks for a program in folders, as a shell does.
func findProgram(name string, dirs []string) (string, bool) {
	for _, dir := range dirs {
		path, err := filepath.Abs(filepath.Join(dir, name))
		if err != nil {
			continue
		}
		if info, err := os.Stat(path); err == nil && info.Mode().IsRegular() && info.Mode()&0o111 != 0 {
			return path, true
		}
	}
	return "", false
}
