package api

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/topsail-serving/topsail/serving"
	"github.com/topsail-serving/topsail/web/auth"
	"github.com/topsail-serving/topsail/web/rest"
)

// Backups makes and restores backups.
type Backups interface {
	// Make puts a backup together, with bundles or without.
	Make(ctx context.Context, bundles bool) (Backup, error)
	// Restore changes nothing before it has read and checked all of r, and nothing at all in
	// a dry run.
	Restore(ctx context.Context, r io.Reader, by serving.Author, dryRun bool) (Restored, error)
}

// Backup is one that is ready to be written.
type Backup interface {
	Name() string // for its file
	Write(ctx context.Context, to io.Writer) error
	Close() error
}

// Restored is what a backup changes, or has changed.
type Restored struct {
	Name     string           `json:"name"`
	Made     time.Time        `json:"made"`
	Release  string           `json:"release"`
	Mode     string           `json:"mode"`
	Revision uint64           `json:"revision"` // of the catalog, then
	Changed  int              `json:"changed"`  // objects of the catalog
	Changes  []RestoredChange `json:"changes"`  // the first of them
	States   int              `json:"states"`
	Usage    int              `json:"usage"`
	Entries  int              `json:"audit_entries"`
	Bundles  int              `json:"bundles"`         // that come from the backup
	Missing  []string         `json:"missing_bundles"` // that are neither in it nor here
	Warnings []string         `json:"warnings"`
	Done     bool             `json:"done"` // false: in a dry run
}

// RestoredChange is one object that a backup changes.
type RestoredChange struct {
	Action string `json:"action"`
	Kind   string `json:"kind"`
	Name   string `json:"name"`
}

const backupType = "application/x-tar"

func (a *api) backUp(w http.ResponseWriter, r *http.Request) error {
	without, err := rest.Flag(r, "without_bundles")
	if err != nil {
		return err
	}
	if r.Method == http.MethodHead { // to say more, the whole of one would have to be made
		w.Header().Set("Content-Type", backupType)
		return nil
	}
	ctx, cancel := context.WithTimeout(r.Context(), transfer)
	defer cancel()
	b, err := a.Backups.Make(ctx, !without)
	if err != nil {
		return err
	}
	defer func() { _ = b.Close() }()
	w.Header().Set("Content-Type", backupType)
	w.Header().Set("Content-Disposition", fmt.Sprintf("attachment; filename=%q", b.Name()))
	if err := b.Write(ctx, w); err != nil {
		panic(http.ErrAbortHandler) // the client sees that it has no end
	}
	_ = a.note(r, "backup", "backup", b.Name(), nil, nil) // it has been sent, also where nothing can be written
	return nil
}

func (a *api) restore(w http.ResponseWriter, r *http.Request) error {
	if err := rest.CheckType(r, backupType); err != nil {
		return err
	}
	dry, err := rest.Flag(r, dryRun)
	if err != nil {
		return err
	}
	if !a.restoring.TryLock() {
		return fmt.Errorf("%w: another backup is being restored; wait for it", ErrRefused)
	}
	defer a.restoring.Unlock()
	ctx, cancel := context.WithTimeout(r.Context(), transfer)
	defer cancel()
	report, err := a.Backups.Restore(ctx, rest.Body{Reader: r.Body}, auth.Of(r.Context()).Author(), dry)
	if err == nil && report.Done {
		err = a.note(r, "restore", "backup", report.Name, nil, nil)
	}
	if err != nil {
		return err
	}
	return rest.Respond(w, http.StatusOK, report)
}
