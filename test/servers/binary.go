package servers

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
)

// Binary finds the program of a server, or says how to get it.
func Binary(name string) (string, error) {
	if name == "redis-server" {
		path, err := exec.LookPath(name)
		if err != nil {
			return "", fmt.Errorf("redis-server is not installed; on Debian: apt-get install redis-server")
		}
		return path, nil
	}
	root, err := Root()
	if err != nil {
		return "", err
	}
	path := filepath.Join(root, "build", "servers", name)
	if _, err := os.Stat(path); err != nil {
		return "", fmt.Errorf("%s is not built; run: make servers", name)
	}
	return path, nil
}

// Root is the folder with the go.mod of Topsail, above the current one.
func Root() (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for {
		if _, err := os.Stat(filepath.Join(dir, "test", "servers", "doc.go")); err == nil {
			return dir, nil
		}
		parent := filepath.Dir(dir)
		if parent == dir {
			return "", fmt.Errorf("the servers are built in a clone of Topsail; change to its folder")
		}
		dir = parent
	}
}
