package api

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"testing"
	"time"

	"github.com/topsail-serving/topsail/serving"
)

// Make, Restore and the methods of Backup are those of a store whose backups have one word.
func (w *world) Make(_ context.Context, bundles bool) (Backup, error) {
	if err := w.backupErr; err != nil {
		return nil, err
	}
	w.backups++
	return word(fmt.Sprint("bundles: ", bundles)), nil
}

func (w *world) Restore(_ context.Context, r io.Reader, by serving.Author, dryRun bool) (Restored, error) {
	text, err := io.ReadAll(r)
	if err != nil {
		return Restored{}, err
	}
	if string(text) != "good" {
		return Restored{}, fmt.Errorf("%w: it is cut short", ErrBackupInvalid)
	}
	return Restored{Name: "b.tar", Made: time.Unix(1e9, 0).UTC(), Warnings: []string{by.Who}, Done: !dryRun}, nil
}

type word string

func (word) Name() string { return "b.tar" }
func (word) Close() error { return nil }

func (text word) Write(_ context.Context, to io.Writer) error {
	_, err := io.WriteString(to, string(text))
	return err
}

func TestBackup(t *testing.T) {
	w := having(t)
	for query, want := range map[string]string{"": "bundles: true", "?without_bundles=true": "bundles: false"} {
		answer := w.askBy("admin", "GET", "/backup"+query, "")
		h := answer.Header()
		if answer.Code != 200 || answer.Body.String() != want || h.Get("Content-Type") != "application/x-tar" || h.Get("Content-Disposition") != `attachment; filename="b.tar"` {
			t.Errorf("%q: %d %s %v", query, answer.Code, answer.Body, h)
		}
	}
	if n := len(w.log); n != 2 || w.log[0].Action != "backup" || w.log[0].Kind != "backup" || w.log[0].Name != "b.tar" || w.log[0].Who != "admin" {
		t.Errorf("the audit log has %+v", w.log)
	}
	expectCode(t, w.askBy("admin", "GET", "/backup?without_bundles=maybe", ""), 400, "invalid")
	made := w.backups
	answer := w.askBy("admin", "HEAD", "/backup", "")
	if answer.Code != 200 || answer.Header().Get("Content-Type") != "application/x-tar" || w.backups != made || len(w.log) != 2 {
		t.Errorf("HEAD: %d %v, made %d", answer.Code, answer.Header(), w.backups-made)
	}
	expect(t, w.askBy("admin", "HEAD", "/backup?without_bundles=maybe", ""), 400)
	w.backupErr = errors.New("no space left on device")
	expectCode(t, w.askBy("admin", "GET", "/backup", ""), 503, "unavailable")
}

func TestRestore(t *testing.T) {
	w := having(t)
	send := func(query, kind, body string) int {
		answer := w.askBy("admin", "POST", "/restore"+query, body, "Content-Type", kind)
		return answer.Code
	}
	if code := send("", "application/x-tar", "bad"); code != http.StatusBadRequest {
		t.Errorf("a bad one: %d", code)
	}
	if code := send("", "application/json", "good"); code != http.StatusUnsupportedMediaType {
		t.Errorf("another type: %d", code)
	}
	if code := send("?dry_run=true", "application/x-tar", "good"); code != http.StatusOK || len(w.log) != 0 {
		t.Errorf("a dry run: %d, and the audit log has %+v", code, w.log)
	}
	if code := send("", "application/x-tar", "good"); code != http.StatusOK || len(w.log) != 1 || w.log[0].Action != "restore" || w.log[0].Name != "b.tar" {
		t.Errorf("%d, and the audit log has %+v", code, w.log)
	}
	w.api.restoring.Lock()
	defer w.api.restoring.Unlock()
	if code := send("", "application/x-tar", "good"); code != http.StatusConflict {
		t.Errorf("beside another: %d", code)
	}
}
