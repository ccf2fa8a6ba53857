package admin

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/topsail-serving/topsail/internal/adapter/s3bucket"
	"github.com/topsail-serving/topsail/internal/durable"
)

// destination is where backups go.
type destination interface {
	spool() string // folder for what is on its way
	put(ctx context.Context, name string, file *os.File, size int64) (where string, err error)
	list(ctx context.Context) (names []string, err error)
	remove(ctx context.Context, name string) error
}

func destinationOf(text string) (destination, error) {
	if strings.Contains(text, "://") {
		files, err := s3bucket.OpenFiles(text)
		return backupBucket{files, text}, err
	}
	info, err := os.Stat(text)
	switch {
	case err == nil && info.IsDir(), strings.HasSuffix(text, "/"):
		return backupFolder(text), os.MkdirAll(text, 0o700)
	case err == nil:
		return nil, fmt.Errorf("%s already exists: name another file, or a folder", text)
	}
	return backupFile(text), nil
}

type backupFile string

func (f backupFile) spool() string { return filepath.Dir(string(f)) }
func (f backupFile) put(_ context.Context, _ string, file *os.File, _ int64) (string, error) {
	return string(f), durable.Rename(file.Name(), string(f))
}
func (f backupFile) list(context.Context) ([]string, error) { return nil, nil }
func (f backupFile) remove(context.Context, string) error   { return nil }

type backupFolder string

func (f backupFolder) spool() string { return string(f) }
func (f backupFolder) put(_ context.Context, name string, file *os.File, _ int64) (string, error) {
	where := filepath.Join(string(f), name)
	return where, durable.Rename(file.Name(), where)
}

func (f backupFolder) list(context.Context) (names []string, err error) {
	entries, err := os.ReadDir(string(f))
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names, err
}

func (f backupFolder) remove(_ context.Context, name string) error {
	return os.Remove(filepath.Join(string(f), name))
}

type backupBucket struct {
	files s3bucket.Files
	url   string
}

func (b backupBucket) spool() string { return "" }
func (b backupBucket) put(ctx context.Context, name string, file *os.File, size int64) (string, error) {
	at, parameters, _ := strings.Cut(b.url, "?")
	where := strings.TrimSuffix(at, "/") + "/" + name
	if parameters != "" {
		where += "?" + parameters
	}
	return where, b.files.Put(ctx, name, file, size)
}
func (b backupBucket) list(ctx context.Context) ([]string, error) { return b.files.List(ctx) }
func (b backupBucket) remove(ctx context.Context, name string) error {
	return b.files.Delete(ctx, name)
}
