package config

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/pelletier/go-toml/v2"
)

// DefaultFile is read when no file is named and it exists in the current folder.
const DefaultFile = "topsail.toml"

const maxFileBytes = 1 << 20

// file is a configuration file: its decoded text, and where every key stands.
// The file that there is not has an empty path and no keys.
type file struct {
	path    string // as it was named
	dir     string // its folder, absolute: relative paths in the file count from here
	tree    map[string]any
	offsets map[string]int // of every key, table and list element, by path
	lines   []int          // the offset at which each line begins
}

// openFile finds and reads the file; not finding one that was named is an error.
func openFile(path string, env environment) (*file, error) {
	named := cmp.Or(path, env[envFile])
	path = cmp.Or(named, DefaultFile)
	text, err := readFile(path)
	switch {
	case errors.Is(err, fs.ErrNotExist) && named == "":
		path = ""
	case errors.Is(err, fs.ErrNotExist):
		return nil, fmt.Errorf("%w: check the path, or name no file to run with the defaults", err)
	case err != nil:
		return nil, fmt.Errorf("configuration: %w", err)
	}
	dir, err := filepath.Abs(filepath.Dir(path))
	if err != nil {
		return nil, fmt.Errorf("configuration: %w", err)
	}
	return parseFile(path, dir, text)
}

func readFile(path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, maxFileBytes+1))
	if err == nil && len(text) > maxFileBytes {
		err = fmt.Errorf("%s is larger than %d bytes", path, maxFileBytes)
	}
	return text, err
}

// parseFile decodes the text. It fails on text that is not TOML, and shows where.
func parseFile(path, dir string, text []byte) (*file, error) {
	f := &file{path: path, dir: dir, lines: []int{0}}
	if err := toml.Unmarshal(text, &f.tree); err != nil {
		if d, ok := errors.AsType[*toml.DecodeError](err); ok {
			line, column := d.Position()
			return nil, fmt.Errorf("%s:%d:%d: this is not TOML:\n%s", path, line, column, d.String())
		}
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	for i, c := range text {
		if c == '\n' {
			f.lines = append(f.lines, i+1)
		}
	}
	f.offsets = locate(text)
	return f, nil
}

// offset is where the key at path stands, or the nearest table around it.
func (f *file) offset(path string) int {
	for path != "" {
		if at, ok := f.offsets[path]; ok {
			return at
		}
		path = path[:max(0, strings.LastIndexAny(path, ".["))]
	}
	return 0
}

// line is the line of a key, counted from 1.
func (f *file) line(path string) int { return f.lineAt(f.offset(path)) }

func (f *file) lineAt(offset int) int {
	next, begins := slices.BinarySearch(f.lines, offset)
	if begins {
		next++
	}
	return next
}

// position is an offset as file:line:column, columns counted in bytes from 1.
func (f *file) position(offset int) string {
	line := f.lineAt(offset)
	return fmt.Sprintf("%s:%d:%d", f.path, line, offset-f.lines[line-1]+1)
}

// source is how a Setting names the place of a key.
func (f *file) source(path string) string { return fmt.Sprintf("%s:%d", f.path, f.line(path)) }
