//go:build system

package main

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/topsail-serving/topsail/test/require"
	"github.com/topsail-serving/topsail/test/servers"
)

// TestABackupComesBack takes backups of a process that serves, to a file, a folder and a
// bucket, loses its data directory, and goes on from them elsewhere.
func TestABackupComesBack(t *testing.T) {
	t.Parallel()
	dir, elsewhere := t.TempDir(), t.TempDir()
	in := start(t, dir, "")
	o := operate(t, in)
	o.do("deploy", "sum", "--bundle", summing(t), "--app", "sums", "--slo", "2s", "--default", "-1")
	o.answers("sums", "[1, 2.5]", "3.5")

	file, folder := filepath.Join(elsewhere, "one.tar"), filepath.Join(elsewhere, "backups")+"/"
	if said := o.do("backup", file); !strings.Contains(said, "1 apps, 1 versions") || !strings.Contains(said, "1 of 1 bundles") {
		t.Errorf("the backup: %s", said)
	}
	o.refused(2, "already exists", "backup", file)
	if info, err := os.Stat(file); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the file: %v, error %v", info, err)
	}
	for range 3 {
		o.do("backup", folder, "--keep", "2", "--without-bundles")
	}
	if kept, _ := filepath.Glob(folder + "*"); len(kept) != 2 {
		t.Errorf("kept %v, want 2", kept)
	}
	keys, bucket := objectStore(t)
	said := o.with(keys...).do("backup", bucket, "--keep", "1")
	inBucket := strings.TrimSuffix(strings.Fields(said)[0], ":")

	o.do("app", "create", "later", "--input-type", "doubles")
	if said := o.do("restore", file, "--dry-run"); !strings.Contains(said, "- app later") || !strings.Contains(said, "would be restored") {
		t.Errorf("the dry run: %s", said)
	}
	o.do("app", "get", "later")
	if err := in.stop(syscall.SIGKILL); err == nil {
		t.Error("it was not killed")
	}

	data, err := os.ReadFile(file)
	require.NoError(t, err)
	cut := filepath.Join(elsewhere, "cut.tar")
	require.NoError(t, os.WriteFile(cut, data[:len(data)/2], 0o600))
	for _, from := range []string{file, inBucket} {
		o := operate(t, start(t, t.TempDir(), "")).with(keys...)
		o.refused(1, "the backup is not valid", "restore", cut, "--yes")
		if said := o.do("restore", from, "--yes"); !strings.Contains(said, "+ app sums") || !strings.Contains(said, "1 bundles are restored") {
			t.Errorf("%s: %s", from, said)
		}
		o.answers("sums", "[1, 2.5]", "3.5")
		if log := o.do("audit", "list"); !strings.Contains(log, "app sums") || !strings.Contains(log, "restore") {
			t.Errorf("the audit log:\n%s", log)
		}
	}
}

// TestBackupsInAFolder makes several, of which the newest are kept; what fails while the process is down leaves them.
func TestBackupsInAFolder(t *testing.T) {
	t.Parallel()
	folder := filepath.Join(t.TempDir(), "backups") + "/"
	in := start(t, t.TempDir(), "")
	o := operate(t, in)
	o.do("app", "create", "a", "--input-type", "doubles")
	said := ""
	for range 3 {
		if said = o.do("backup", folder, "--keep", "1"); !strings.Contains(said, "1 apps") {
			t.Errorf("says %q", said)
		}
	}
	left, _ := filepath.Glob(folder + "*")
	if len(left) != 1 || !strings.Contains(said, left[0]) {
		t.Fatalf("kept %v, and said %q", left, said)
	}
	o.do("restore", left[0], "--dry-run")
	require.NoError(t, in.stop(syscall.SIGTERM))
	o.refused(5, "does not answer", "backup", folder, "--keep", "1")
	if now, _ := filepath.Glob(folder + "*"); len(now) != 1 || now[0] != left[0] {
		t.Errorf("left %v", now)
	}
}

// objectStore runs one: the variables with its keys, and the URL of a bucket.
func objectStore(t *testing.T) (keys []string, url string) {
	t.Helper()
	port, err := servers.FreePort()
	require.NoError(t, err)
	server, err := servers.S3(t.TempDir(), port)
	if err == nil {
		err = server.Start(t.Context())
	}
	require.NoError(t, err)
	t.Cleanup(server.Stop)
	return []string{"AWS_ACCESS_KEY_ID=" + servers.S3AccessKey, "AWS_SECRET_ACCESS_KEY=" + servers.S3SecretKey},
		"s3://bundles/backups?region=us-east-1&endpoint=http://" + server.Addr
}
