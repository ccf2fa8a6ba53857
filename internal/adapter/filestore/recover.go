package filestore

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"go.etcd.io/bbolt"

	"github.com/topsail-serving/topsail/internal/durable"
	"github.com/topsail-serving/topsail/serving"
	"github.com/topsail-serving/topsail/serving/catalog"
)

// Recover puts the newest good copy in place of a file that is damaged or missing, which it
// moves aside. It fails where the file can be opened, or there is no good copy. What was
// changed since the copy was made is lost; the log and the audit log say so.
func Recover(ctx context.Context, dir string, log *slog.Logger) error {
	path := filepath.Join(dir, FileName)
	_, damage := Check(path)
	switch _, system := errors.AsType[syscall.Errno](damage); {
	case damage == nil:
		return fmt.Errorf("%s can be opened: start without --recover", path)
	case errors.Is(damage, ErrInUse), errors.Is(damage, errOtherFormat), system && !errors.Is(damage, fs.ErrNotExist):
		return explain(path, damage)
	}
	for _, c := range Copies(dir) {
		if found, err := Check(c.Path); err != nil || len(found) > 0 {
			log.Warn("a copy is damaged, too, and passed over", "copy", c.Path, "found", found, "err", err)
			continue
		}
		if err := recoverFrom(ctx, c, path, log); err != nil {
			return fmt.Errorf("recover %s from %s: %w", path, c.Path, err)
		}
		log.Warn("the state is that of a copy: what was changed since is lost", "copy", c.Path, "made", c.At, "damage", damage)
		return nil
	}
	return fmt.Errorf("%s is damaged (%w), and there is no good copy in %s: move the file aside, start again, and restore a backup (topsail restore)", path, damage, copiesOf(path))
}

// leap is how many blocks of query ids are passed over after a recovery: more than were leased
// since the copy was made.
const leap = 1 << 16

func recoverFrom(ctx context.Context, c Copy, path string, log *slog.Logger) error {
	next := path + ".recovered"
	if err := copyFile(c.Path, next); err != nil {
		return err
	}
	if err := moveAside(path); err != nil {
		return err
	}
	if err := durable.Rename(next, path); err != nil {
		return err
	}
	s, err := Open(filepath.Dir(path), log)
	if err != nil {
		return err
	}
	err = s.update(func(t *tx) error { return t.putNumber(leaseNumber, t.number(leaseNumber)+leap) })
	if err == nil {
		err = s.AddAudit(ctx, serving.AuditEntry{
			At: time.Now().UTC(), Who: "local", Action: "recover", Kind: "backup", Name: filepath.Base(c.Path), Revision: s.Catalog().Revision,
		})
	}
	return errors.Join(err, s.Close())
}

// moveAside renames the file, if there is one.
func moveAside(path string) error {
	err := os.Rename(path, path+".damaged-"+time.Now().UTC().Format(copyTime))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

func copyFile(from, to string) error {
	data, err := os.Open(from)
	if err != nil {
		return err
	}
	defer data.Close()
	f, err := os.OpenFile(to, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = f.ReadFrom(data)
	return errors.Join(err, f.Close())
}

// Check looks through a file that no process has open for writing: it fails where Open would,
// and returns what Open would set aside. It fails with ErrInUse where a process has.
func Check(path string) (found []string, err error) {
	if err := notForgotten(path); err != nil {
		return nil, err
	}
	if info, err := os.Stat(path); err != nil {
		return nil, err
	} else if info.Size() == 0 {
		return nil, fmt.Errorf("%s is empty: %w", path, fs.ErrNotExist) // as before a first start
	}
	torn, err := checkFile(path)
	if err != nil {
		return nil, err
	}
	if torn {
		found = append(found, tornMeta)
	}
	db, err := openToRead(path)
	if err != nil {
		return nil, err
	}
	defer db.Close()
	err = db.View(func(raw *bbolt.Tx) error {
		t := newTx(raw, func(string, []byte) {})
		if err := t.checkFormat(); err != nil {
			return err
		}
		faults, err := t.check()
		for _, f := range faults {
			found = append(found, f.String())
		}
		if err != nil {
			return err
		}
		_, err = catalog.Decode(t.number(revisionNumber), t.documents())
		return err
	})
	return found, err
}

// ErrForgotten says that the file is lost which other files were made with.
var ErrForgotten = errors.New("missing or empty, and beside it are bundles or copies of it, so this is not a first start")

// notForgotten fails where there is no file, or an empty one, beside what was made with one:
// it is lost, and this is not a first start.
func notForgotten(path string) error {
	if info, err := os.Stat(path); err == nil && info.Size() > 0 || err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	bundles, _ := os.ReadDir(filepath.Join(filepath.Dir(path), "bundles"))
	if len(bundles) == 0 && len(Copies(filepath.Dir(path))) == 0 {
		return nil
	}
	return fmt.Errorf("%s is %w; bring the file back, or %s", path, ErrForgotten, wayOut(path))
}

// wayOut says what to do about a file that cannot be opened.
func wayOut(path string) string {
	const anew = "what the configuration file defines comes back, what was made through the API has to be made again or comes from a backup (topsail restore)"
	if copies := Copies(filepath.Dir(path)); len(copies) > 0 {
		return fmt.Sprintf("start with --recover to go on from the copy of %s, without what was changed since; or move %s aside and start again: %s",
			copies[0].At.Format(time.RFC3339), filepath.Dir(path), anew)
	}
	return fmt.Sprintf("move %s aside and start again: %s", filepath.Dir(path), anew)
}
