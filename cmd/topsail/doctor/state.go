package doctor

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"strings"
	"time"

	"github.com/topsail-serving/topsail/internal/adapter/filestore"
	"github.com/topsail-serving/topsail/internal/check"
	"github.com/topsail-serving/topsail/serving"
)

// state looks through the file of local mode's state, unless it is in use, and says how old
// its newest copy and the last backup are.
func state(ctx context.Context, dir string) []check.Finding {
	const name = "state"
	copies := "it has no copy yet"
	if all := filestore.Copies(dir); len(all) > 0 {
		copies = "its newest copy is of " + all[0].At.Format(time.RFC3339)
	}
	path := filepath.Join(dir, filestore.FileName)
	found, err := filestore.Check(path)
	switch {
	case errors.Is(err, filestore.ErrForgotten):
		return []check.Finding{check.Bad(name, err.Error(), "`topsail local --recover` continues from the newest good copy, if there is one; or restore a backup")}
	case errors.Is(err, fs.ErrNotExist):
		return []check.Finding{check.Good(name, "there is none yet")}
	case errors.Is(err, filestore.ErrInUse):
		return []check.Finding{check.Good(name, "in use by a topsail, which has checked it; %s", copies), LastBackup(ctx, filestore.Noted(path))}
	case err != nil:
		return []check.Finding{check.Bad(name, fmt.Sprintf("damaged: %v; %s", err, copies), "`topsail local --recover` continues from the newest good copy; or restore a backup")}
	case len(found) > 0:
		return []check.Finding{check.Warning(name, strings.Join(found, "; ")+"; "+copies, "the next start sets the damaged part aside; restore a backup to return to an earlier state")}
	}
	return []check.Finding{check.Good(name, "good; %s", copies), LastBackup(ctx, filestore.Closed(path))}
}

// tooOld is the age from which on the last backup is reported.
const tooOld = 7 * 24 * time.Hour

// LastBackup judges when the last backup was made, by the audit log.
func LastBackup(ctx context.Context, log interface {
	AuditLog(ctx context.Context, query serving.AuditQuery) ([]serving.AuditEntry, error)
}) check.Finding {
	const name, next = "last backup", "make one with `topsail backup DESTINATION`, and regularly by cron or the job backup.nomad.hcl"
	entries, err := log.AuditLog(ctx, serving.AuditQuery{Kind: "backup", Limit: 20})
	if err != nil {
		return check.Broken(ctx, name, err, next)
	}
	for _, e := range entries {
		if e.Action != "backup" {
			continue
		}
		age := time.Since(e.At)
		f := check.Good(name, "%s, %.1f days ago", e.Name, age.Hours()/24)
		if age > tooOld {
			f.State, f.Next = check.Warn, next
		}
		return f
	}
	return check.Warning(name, "this state has no backup", next)
}
