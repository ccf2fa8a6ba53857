package intact

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"time"
)

// RecordEnding follows the name of a folder in that of its record.
const RecordEnding = ".record"

// Record is how the files of a folder are.
type Record struct {
	Compared time.Time       `json:"compared"` // when all digests were, last
	Files    map[string]File `json:"files"`    // by name, with /
}

// File is how a file is. Time and Mode are zero where they are not known.
type File struct {
	SHA256 string      `json:"sha256"`
	Size   int64       `json:"size"`
	Time   int64       `json:"time,omitempty"` // of its last change, in nanoseconds since 1970
	Mode   fs.FileMode `json:"mode,omitempty"` // the permissions
}

// Note records the files of a folder.
func Note(ctx context.Context, dir string) error {
	names, err := list(dir)
	if err != nil {
		return fmt.Errorf("cannot record %s: %w", dir, err)
	}
	return note(ctx, dir, names)
}

// note records some files of a folder.
func note(ctx context.Context, dir string, names []string) error {
	r := Record{Compared: time.Now(), Files: map[string]File{}}
	var mu sync.Mutex
	err := each(ctx, names, func(name string) error {
		path := filepath.Join(dir, name)
		f, err := look(path)
		if err != nil {
			return err
		}
		if f.SHA256, err = sum(ctx, path); err != nil {
			return err
		}
		mu.Lock()
		defer mu.Unlock()
		r.Files[name] = f
		return nil
	})
	if err != nil {
		return fmt.Errorf("cannot record %s: %w", dir, err)
	}
	return r.write(dir)
}

// list names the files of a folder that are neither links nor compiled by Python.
func list(dir string) (names []string, err error) {
	err = filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() && entry.Name() == compiled:
			return fs.SkipDir
		case !entry.Type().IsRegular():
			return nil
		}
		name, err := filepath.Rel(dir, path)
		names = append(names, filepath.ToSlash(name))
		return err
	})
	return names, err
}

// look is how a file is, but for its digest.
func look(path string) (File, error) {
	info, err := os.Lstat(path)
	switch {
	case err != nil:
		return File{}, err
	case !info.Mode().IsRegular():
		return File{}, fmt.Errorf("%s is not a file", path)
	}
	return File{Size: info.Size(), Time: info.ModTime().UnixNano(), Mode: info.Mode().Perm()}, nil
}

func sum(ctx context.Context, path string) (string, error) {
	f, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer f.Close()
	hash := sha256.New()
	if _, err := io.Copy(hash, patient{ctx, f}); err != nil {
		return "", err
	}
	return hex.EncodeToString(hash.Sum(nil)), nil
}

// patient reads until ctx ends.
type patient struct {
	ctx context.Context
	r   io.Reader
}

func (p patient) Read(b []byte) (int, error) {
	if p.ctx.Err() != nil {
		return 0, context.Cause(p.ctx)
	}
	return p.r.Read(b)
}

// write puts the record beside the folder, after a line with its own digest.
func (r *Record) write(dir string) error {
	text, err := json.Marshal(r)
	if err != nil {
		return err
	}
	own := sha256.Sum256(text)
	text = append([]byte(hex.EncodeToString(own[:])+"\n"), text...)
	f, err := os.CreateTemp(filepath.Dir(dir), filepath.Base(dir)+RecordEnding+".*")
	if err != nil {
		return fmt.Errorf("cannot write the record of %s: %w", dir, err)
	}
	_, err = f.Write(text)
	if err = errors.Join(err, f.Close()); err == nil {
		err = replace(filepath.Dir(dir), filepath.Base(dir)+RecordEnding, f.Name())
	}
	if err != nil {
		return errors.Join(fmt.Errorf("cannot write the record of %s: %w", dir, err), os.Remove(f.Name()))
	}
	return nil
}

// read is the record of a folder, or nil where there is none that is whole.
func read(dir string) *Record {
	text, err := os.ReadFile(dir + RecordEnding)
	if err != nil {
		return nil
	}
	first, rest, _ := bytes.Cut(text, []byte("\n"))
	var r Record
	if own := sha256.Sum256(rest); hex.EncodeToString(own[:]) != string(first) || json.Unmarshal(rest, &r) != nil {
		return nil
	}
	return &r
}
