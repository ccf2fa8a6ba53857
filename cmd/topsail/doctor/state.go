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
	"github.com/topsail-serving/topsail/serving"
)

// state looks through the file of local mode's state, unless it is in use, and says how old
// its newest copy and the last backup are.
func state(ctx context.Context, dir string) []Finding {
	const check = "state"
	copies := "it has no copy yet"
	if all := filestore.Copies(dir); len(all) > 0 {
		copies = "its newest copy is of " + all[0].At.Format(time.RFC3339)
	}
	path := filepath.Join(dir, filestore.FileName)
	found, err := filestore.Check(path)
	switch {
	case errors.Is(err, filestore.ErrForgotten):
		return []Finding{{check, Fail, err.Error(), "`topsail local --recover` continues from the newest good copy, if there is one; or restore a backup"}}
	case errors.Is(err, fs.ErrNotExist):
		return []Finding{Good(check, "there is none yet")}
	case errors.Is(err, filestore.ErrInUse):
		return []Finding{Good(check, "in use by a topsail, which has checked it; %s", copies), LastBackup(ctx, filestore.Noted(path))}
	case err != nil:
		return []Finding{{check, Fail, fmt.Sprintf("damaged: %v; %s", err, copies), "`topsail local --recover` continues from the newest good copy; or restore a backup"}}
	case len(found) > 0:
		return []Finding{{check, Warn, strings.Join(found, "; ") + "; " + copies, "the next start sets the damaged part aside; restore a backup to return to an earlier state"}}
	}
	return []Finding{Good(check, "good; %s", copies), LastBackup(ctx, filestore.Closed(path))}
}

// tooOld is the age from which on the last backup is reported.
const tooOld = 7 * 24 * time.Hour

// LastBackup judges when the last backup was made, by the audit log.
func LastBackup(ctx context.Context, log interface {
	AuditLog(ctx context.Context, query serving.AuditQuery) ([]serving.AuditEntry, error)
}) Finding {
	const check, next = "last backup", "make one with `topsail backup DESTINATION`, regularly with --every or the job backup.nomad.hcl"
	entries, err := log.AuditLog(ctx, serving.AuditQuery{Kind: "backup", Limit: 20})
	if err != nil {
		return Broken(ctx, check, err, next)
	}
	for _, e := range entries {
		if e.Action != "backup" {
			continue
		}
		age := time.Since(e.At)
		f := Good(check, "%s, %.1f days ago", e.Name, age.Hours()/24)
		if age > tooOld {
			f.State, f.Next = Warn, next
		}
		return f
	}
	return Finding{check, Warn, "this state has no backup", next}
}
