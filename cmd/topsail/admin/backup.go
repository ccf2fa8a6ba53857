package admin

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/topsail-serving/topsail/cmd/topsail/admin/screen"
	"github.com/topsail-serving/topsail/internal/adapter/s3bucket"
	"github.com/topsail-serving/topsail/internal/apiclient"
	"github.com/topsail-serving/topsail/internal/durable"
	"github.com/topsail-serving/topsail/web/backup"
)

const tarType = "application/x-tar"

func backupCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "backup DESTINATION",
		Short: "Back up everything: apps, models, keys, learned state, usage, the audit log, and bundles",
		Long: "Writes everything acknowledged so far to one file, while Topsail runs, and verifies it. The destination is a file that\n" +
			"does not exist yet, a folder, or s3://BUCKET/PREFIX?endpoint=URL with keys in the environment, as for web.bundles. Files in\n" +
			"folders and buckets are named by their time, and the oldest are removed. A backup contains the hashes of keys and the variables of\n" +
			"models: keep it secret.",
		Example: "  topsail backup before-upgrade.tar\n  topsail backup /mnt/backups/ --keep 30\n  topsail backup s3://ops/topsail",
		Args:    cobra.ExactArgs(1),
	}
	c.Flags().Bool("without-bundles", false, "list bundles without their contents: their store has its own backup")
	c.Flags().Int("keep", 14, "how many backups to keep in a folder or bucket; 0 keeps all")
	return single(c, backUp)
}

// backUp fetches a backup, checks it, and only then gives it its name.
func backUp(k *call) error {
	to, err := destinationOf(k.args[0])
	if err != nil {
		return usageError{err}
	}
	part, err := os.CreateTemp(to.spool(), ".topsail-backup-*")
	if err != nil {
		return err
	}
	defer os.Remove(part.Name())
	defer part.Close()
	contents, size, err := fetchBackup(k, part)
	if err != nil {
		return err
	}
	where, err := to.put(k.ctx, backup.Name(contents.Made), part, size)
	if err != nil {
		return err
	}
	keep, _ := k.cmd.Flags().GetInt("keep")
	if err := forgetBackups(k.ctx, to, keep); err != nil {
		fmt.Fprintf(k.Err, "older backups were not removed: %v\n", err)
	}
	if k.format == "json" {
		text, err := json.Marshal(struct {
			Backup string `json:"backup"`
			Size   int64  `json:"size"`
			backup.Contents
		}{where, size, contents})
		if err != nil {
			return err
		}
		return k.json(text)
	}
	included := 0
	for _, b := range contents.Bundles {
		if b.Included {
			included++
		}
	}
	k.say("%s: %s, %d apps, %d versions, %d keys, %d learned states, %d audit entries, %d of %d bundles",
		where, screen.Bytes(size), contents.Apps, contents.Versions, contents.Keys, contents.States, contents.Entries, included, len(contents.Bundles))
	return nil
}

func fetchBackup(k *call, part *os.File) (backup.Contents, int64, error) {
	query := url.Values{}
	if k.flag("without-bundles") {
		query.Set("without_bundles", "true")
	}
	response, err := k.Stream(k.ctx, apiclient.Request{Path: []string{"backup"}, Query: query, Accept: tarType})
	if err != nil {
		return backup.Contents{}, 0, err
	}
	defer response.Body.Close()
	progress := k.Progress()
	defer progress.End()
	size, err := io.Copy(part, &meter{from: response.Body, size: 20, tell: func(n, _ int64) { progress.Say("fetching the backup: %s", screen.Bytes(n)) }})
	if err != nil {
		return backup.Contents{}, 0, fmt.Errorf("the backup was interrupted: %w", err)
	}
	progress.Say("checking the backup")
	file, err := backup.Open(part, size)
	if err != nil {
		return backup.Contents{}, 0, err
	}
	return file.Contents, size, nil
}

// forgetBackups removes the oldest of those that are too many.
func forgetBackups(ctx context.Context, from destination, keep int) error {
	names, err := from.list(ctx)
	if err != nil || keep <= 0 {
		return err
	}
	names = slices.DeleteFunc(names, func(name string) bool {
		good, _ := path.Match("topsail-backup-*.tar", name)
		return !good
	})
	slices.Sort(names)
	for _, name := range names[:max(0, len(names)-keep)] {
		err = errors.Join(err, from.remove(ctx, name))
	}
	return err
}

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
