//go:build system

package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

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
	if err != nil {
		t.Fatal(err)
	}
	cut := filepath.Join(elsewhere, "cut.tar")
	if err := os.WriteFile(cut, data[:len(data)/2], 0o600); err != nil {
		t.Fatal(err)
	}
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

// TestBackupsAgainAndAgain makes backups for as long as it is let, beside a process that is away
// for some time.
func TestBackupsAgainAndAgain(t *testing.T) {
	t.Parallel()
	dir, folder := t.TempDir(), filepath.Join(t.TempDir(), "backups")+"/"
	flags := fixedPorts(t)
	in := start(t, dir, "", flags...)
	o := operate(t, in)
	o.do("app", "create", "a", "--input-type", "doubles")
	o.refused(2, "--every must be 10s or more", "backup", folder, "--every", "9s")
	o.refused(2, "--every needs a folder", "backup", folder+"one.tar", "--every", "10s")

	again := &role{exited: make(chan error, 1)}
	again.cmd = exec.Command(programs.topsail, "backup", folder, "--every", "10s", "--keep", "1")
	again.cmd.Env = append(os.Environ(), o.env...)
	again.cmd.Stdout, again.cmd.Stderr = again, again
	if err := again.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() { again.exited <- again.cmd.Wait() }()
	defer again.cmd.Process.Kill()
	made := func(n int) func() bool { return func() bool { return strings.Count(again.output(), "1 apps") == n } }
	until(t, "a backup", made(1))
	if err := in.stop(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	until(t, "a backup that fails", func() bool { return strings.Contains(again.output(), "the backup failed, the next one is in 10s") })
	in = start(t, dir, "", flags...)
	in.web()
	until(t, "the next backup", made(2))
	again.cmd.Process.Signal(syscall.SIGTERM)
	select {
	case err := <-again.exited:
		if err != nil {
			t.Errorf("it ended with %v:\n%s", err, again.output())
		}
	case <-time.After(patience):
		t.Fatal("it did not end")
	}
	left, _ := filepath.Glob(folder + "*")
	if len(left) != 1 || !strings.Contains(again.output(), left[0]) || strings.Index(again.output(), left[0]) < strings.Index(again.output(), "the backup failed") {
		t.Errorf("kept %v:\n%s", left, again.output())
	}
	o.do("restore", left[0], "--dry-run")
}

// fixedPorts are flags for a process that starts again where it was.
func fixedPorts(t *testing.T) (flags []string) {
	t.Helper()
	for _, which := range []string{"gateway", "web"} {
		port, err := servers.FreePort()
		if err != nil {
			t.Fatal(err)
		}
		flags = append(flags, "--"+which+"-addr", fmt.Sprintf("127.0.0.1:%d", port))
	}
	return flags
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
