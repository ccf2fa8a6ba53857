package main

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"topsail/internal/servers"
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
	o.refused(2, "exists already", "backup", file)
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
	if err != nil {
		t.Fatal(err)
	}
	cut := filepath.Join(elsewhere, "cut.tar")
	if err := os.WriteFile(cut, data[:len(data)/2], 0o600); err != nil {
		t.Fatal(err)
	}
	for _, from := range []string{file, inBucket} {
		o := operate(t, start(t, t.TempDir(), "")).with(keys...)
		o.refused(1, "this is not a good backup", "restore", cut, "--yes")
		if said := o.do("restore", from, "--yes"); !strings.Contains(said, "+ app sums") || !strings.Contains(said, "1 bundles are restored") {
			t.Errorf("%s: %s", from, said)
		}
		o.answers("sums", "[1, 2.5]", "3.5")
		if log := o.do("audit", "list"); !strings.Contains(log, "app sums") || !strings.Contains(log, "restore") {
			t.Errorf("the audit log:\n%s", log)
		}
	}
}

// objectStore runs one: the variables with its keys, and the URL of a bucket.
func objectStore(t *testing.T) (keys []string, url string) {
	t.Helper()
	port, err := servers.FreePort()
	if err != nil {
		t.Fatal(err)
	}
	server, err := servers.S3(t.TempDir(), port)
	if err == nil {
		err = server.Start(t.Context())
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(server.Stop)
	return []string{"AWS_ACCESS_KEY_ID=" + servers.S3AccessKey, "AWS_SECRET_ACCESS_KEY=" + servers.S3SecretKey},
		"s3://bundles/backups?region=us-east-1&endpoint=http://" + server.Addr
}

// TestRecover goes on from the last good copy, where it is told to.
func TestRecover(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	in := start(t, dir, "")
	o := operate(t, in)
	o.do("app", "create", "a", "--input-type", "doubles")
	if err := in.stop(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	in = start(t, dir, "") // this start keeps a copy
	o = o.with("TOPSAIL_ADMIN_URL=" + in.web())
	in.until("a copy", func() bool {
		all, _ := filepath.Glob(filepath.Join(dir, "data", "copies", "*.db"))
		return len(all) == 2
	})
	o.do("app", "create", "b", "--input-type", "doubles")
	if err := in.stop(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(dir, "data", "topsail.db")
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	clear(data[len(data)/4:])
	if err := os.WriteFile(file, data, 0o600); err != nil {
		t.Fatal(err)
	}
	in = start(t, dir, "")
	in.until("a refusal", func() bool {
		return strings.Contains(in.output(), "is damaged") && strings.Contains(in.output(), "start with --recover")
	})
	in = start(t, dir, "", "--recover")
	o = o.with("TOPSAIL_ADMIN_URL=" + in.web())
	if list := o.do("app", "list"); !strings.Contains(list, "a ") || strings.Contains(list, "b ") {
		t.Errorf("the apps are\n%s", list)
	}
	if !strings.Contains(in.output(), "what was changed since is lost") {
		t.Errorf("it does not say what is lost:\n%s", in.output())
	}
}
