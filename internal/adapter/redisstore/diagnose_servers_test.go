//go:build servers

package redisstore

import (
	"strings"
	"testing"
	"time"
)

func TestDiagnose(t *testing.T) {
	t.Parallel()
	server := ownRedis(t, t.TempDir(), "--user", "default", "on", "nopass", "~*", "&*", "+@all",
		"--user", "reader", "on", ">secret", "~*", "+@all", "-@write", "-config", "-time", "--maxmemory", "512mb")
	d, err := diagnose(t, server, "default")
	if err != nil || d.Info != nil || d.Write != nil || d.Alarm != "" {
		t.Fatalf("got %+v, error %v", d, err)
	}
	if d.Version == "" || !d.AppendOnly || d.Fsync != "always" || d.Eviction != "noeviction" || d.UsedBytes == 0 || d.MaxBytes != 512<<20 {
		t.Errorf("got %+v", d)
	}
	if d.Ahead == nil || d.Ahead.Abs() > time.Second {
		t.Errorf("the clock of this machine is %v ahead of itself", d.Ahead)
	}
	if left := client(t, server).Keys(t.Context(), "*doctor*").Val(); len(left) != 0 {
		t.Errorf("it left %v", left)
	}
	d, err = diagnose(t, server, "reader")
	if err != nil || d.Write == nil || !strings.Contains(d.Write.Error(), "NOPERM") || d.Fsync != "" || d.Ahead != nil || !d.AppendOnly {
		t.Errorf("as one who may only read: got %+v, error %v", d, err)
	}
	server.Kill()
	if _, err := diagnose(t, server, "default"); err == nil {
		t.Error("no error while it is down")
	}
}
