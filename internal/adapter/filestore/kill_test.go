package filestore

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"testing"

	"github.com/topsail-serving/topsail/serving"
	"github.com/topsail-serving/topsail/serving/catalog"
	"github.com/topsail-serving/topsail/test/require"
)

// writerEnv makes the test binary a process that writes to this directory until
// it is killed, and prints what it has written.
const writerEnv = "FILESTORE_TEST_WRITE_TO"

func TestMain(m *testing.M) {
	if dir := os.Getenv(writerEnv); dir != "" {
		fmt.Println(writeOn(dir))
		os.Exit(1)
	}
	os.Exit(m.Run())
}

func writeOn(dir string) error {
	s, err := Open(dir, quiet())
	if err != nil {
		return err
	}
	for {
		name := fmt.Sprintf("app-%d", s.Catalog().Revision+1)
		cat, err := s.Apply(context.Background(), signed(catalog.PutApp{App: app(name), Create: true}), 0)
		if err != nil {
			return err
		}
		if err := s.AddUsage(context.Background(), reportOf(name)); err != nil {
			return err
		}
		block, err := s.LeaseQueryIDs(context.Background())
		if err != nil {
			return err
		}
		fmt.Println(cat.Revision, block)
	}
}

// reportOf is the only report of a writer, of one answer of the app of its name.
func reportOf(app string) serving.UsageReport {
	return serving.UsageReport{Writer: app, Number: 1, Revision: 1 << 40, Counted: []serving.Usage{{Key: serving.UsageKey{App: app}, Answers: 1}}}
}

// TestKill kills a process that writes, again and again: every write that it has
// acknowledged is there, and none is there by half. What it may not have acknowledged
// is sent again, and counted once.
func TestKill(t *testing.T) {
	dir := t.TempDir()
	for round := range 4 {
		revision, block := writeAndKill(t, dir, 10+7*round)
		s := open(t, dir)
		cat := s.Catalog()
		if cat.Revision != revision && cat.Revision != revision+1 || len(cat.Apps) != int(cat.Revision) {
			t.Fatalf("revision %d with %d apps after revision %d was acknowledged", cat.Revision, len(cat.Apps), revision)
		}
		for i := range cat.Revision {
			if name := fmt.Sprintf("app-%d", i+1); cat.Apps[name] == nil {
				t.Fatalf("%s is lost", name)
			}
		}
		log, err := s.AuditLog(t.Context(), serving.AuditQuery{Limit: 1000})
		if err != nil || len(log) != int(cat.Revision) {
			t.Fatalf("%d entries for %d changes, error %v", len(log), cat.Revision, err)
		}
		for i, e := range log {
			if e.Revision != cat.Revision-uint64(i) || e.Name != fmt.Sprintf("app-%d", e.Revision) {
				t.Fatalf("entry %d is %+v", i, e)
			}
		}
		for i := range cat.Revision {
			name := fmt.Sprintf("app-%d", i+1)
			err := s.AddUsage(t.Context(), reportOf(name))
			used, err2 := s.UsageOf(t.Context(), []serving.UsageKey{{App: name}})
			if err != nil || err2 != nil || len(used) != 1 || used[0].Answers != 1 || used[0].Since.IsZero() {
				t.Fatalf("%s: got %+v and errors %v, %v", name, used, err, err2)
			}
		}
		next, err := s.LeaseQueryIDs(t.Context())
		if err != nil || next <= block || next > block+2 {
			t.Fatalf("got block %d and error %v after block %d", next, err, block)
		}
		closeStore(t, s)
	}
}

// writeAndKill lets a process write, kills it after some lines, and returns what
// it has acknowledged last.
func writeAndKill(t *testing.T, dir string, lines int) (revision uint64, block uint32) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), os.Args[0])
	cmd.Env = append(os.Environ(), writerEnv+"="+dir)
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	scanner := bufio.NewScanner(out)
	for n := 0; scanner.Scan(); n++ {
		if _, err := fmt.Sscan(scanner.Text(), &revision, &block); err != nil {
			t.Fatalf("the writer says %q", scanner.Text())
		}
		if n == lines {
			require.NoError(t, cmd.Process.Kill())
		}
	}
	if err := cmd.Wait(); err == nil {
		t.Fatal("the writer ended on its own")
	}
	return revision, block
}
