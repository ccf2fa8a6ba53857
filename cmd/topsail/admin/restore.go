package admin

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"path"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/topsail-serving/topsail/cmd/topsail/admin/screen"
	"github.com/topsail-serving/topsail/internal/adapter/s3bucket"
	"github.com/topsail-serving/topsail/internal/apiclient"
	"github.com/topsail-serving/topsail/web/api"
	"github.com/topsail-serving/topsail/web/backup"
)

// RestoreBackup brings back the backup that the only argument names. Its command has serverFlags, and
// those of deletes.
func RestoreBackup(c *cobra.Command, args []string) error {
	k, err := newCall(c, args)
	if err != nil {
		return err
	}
	defer k.Close()
	return restoreBackup(k)
}

// RestoreFlags gives a command the flags of RestoreBackup.
func RestoreFlags(c *cobra.Command) {
	serverFlags(c.Flags())
	deletes(c)
}

func restoreBackup(k *call) error {
	file, done, err := openBackup(k.ctx, k.args[0])
	if err != nil {
		return err
	}
	defer done()
	info, err := file.Stat()
	if err != nil {
		return err
	}
	if _, err := backup.Open(file, info.Size()); err != nil {
		return fmt.Errorf("%s: %w", k.args[0], err)
	}
	if !k.flag("yes") || k.dryRun() {
		would, raw, err := sendBackup(k, file, info.Size(), true)
		if err != nil {
			return err
		}
		if k.dryRun() {
			return k.showRestored(would, raw)
		}
		if err := k.showRestored(would, nil); err != nil {
			return err
		}
		sure, err := k.Ask(k.ctx, "Restore?")
		if err != nil {
			return err
		}
		if !sure {
			return errors.New("nothing was restored")
		}
	}
	report, raw, err := sendBackup(k, file, info.Size(), false)
	if err != nil {
		return err
	}
	return k.showRestored(report, raw)
}

// openBackup opens a backup in a file or a bucket.
func openBackup(ctx context.Context, at string) (file *os.File, done func(), err error) {
	if !strings.Contains(at, "://") {
		file, err = os.Open(at)
		return file, func() { file.Close() }, err
	}
	u, err := url.Parse(at)
	if err != nil {
		return nil, nil, usageError{err}
	}
	name := path.Base(u.Path)
	u.Path = path.Dir(u.Path)
	files, err := s3bucket.OpenFiles(u.String())
	if err != nil {
		return nil, nil, usageError{err}
	}
	if file, err = os.CreateTemp("", "topsail-backup-*"); err != nil {
		return nil, nil, err
	}
	done = func() { file.Close(); os.Remove(file.Name()) }
	if err := files.Get(ctx, name, file); err != nil {
		done()
		return nil, nil, err
	}
	return file, done, nil
}

func sendBackup(k *call, file *os.File, size int64, dryRun bool) (report api.Restored, raw json.RawMessage, err error) {
	progress := k.Progress()
	defer progress.End()
	what := "restoring"
	if dryRun {
		what = "comparing"
	}
	sent := &meter{from: io.NewSectionReader(file, 0, size), size: size, tell: func(n, size int64) {
		progress.Say("%s %s %s of %s", what, screen.Bar(float64(n)/float64(max(size, 1)), 20), screen.Bytes(n), screen.Bytes(size))
	}}
	query := url.Values{}
	if dryRun {
		query.Set("dry_run", "true")
	}
	response, err := k.Stream(k.ctx, apiclient.Request{
		Method: http.MethodPost, Path: []string{"restore"}, Query: query, Type: tarType, Content: sent, Length: size,
	})
	if err != nil {
		return report, nil, err
	}
	defer response.Body.Close()
	if raw, err = io.ReadAll(io.LimitReader(response.Body, apiclient.MaxAnswer)); err == nil {
		err = json.Unmarshal(raw, &report)
	}
	if err != nil {
		return report, nil, fmt.Errorf("the answer cannot be read: %w", err)
	}
	return report, raw, nil
}

// showRestored prints a report for programs, where raw is given and asked for, or for people.
func (k *call) showRestored(r api.Restored, raw json.RawMessage) error {
	if raw != nil && k.format == "json" {
		return k.json(raw)
	}
	fmt.Fprintf(k.Out, "%s, of %s, made by %s in %s mode, revision %d\n", r.Name, r.Made.Local().Format(time.DateTime), r.Release, r.Mode, r.Revision)
	for _, c := range r.Changes {
		sign := map[string]string{"create": "+", "delete": "-", "update": "~"}[c.Action]
		fmt.Fprintln(k.Out, k.Paint(fmt.Sprintf("%s %s %s", sign, c.Kind, c.Name)))
	}
	if more := r.Changed - len(r.Changes); more > 0 {
		fmt.Fprintf(k.Out, "  and %d more\n", more)
	}
	for _, w := range r.Warnings {
		fmt.Fprintf(k.Out, "! %s\n", w)
	}
	verb := "would be restored"
	if r.Done {
		verb = "are restored"
	}
	fmt.Fprintf(k.Out, "%d objects of the catalog, %d learned states, %d figures of usage, %d audit entries and %d bundles %s\n",
		r.Changed, r.States, r.Usage, r.Entries, r.Bundles, verb)
	return nil
}
