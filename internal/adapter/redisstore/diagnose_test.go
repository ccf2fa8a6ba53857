package redisstore

import (
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/topsail-serving/topsail/test/servers"
)

// diagnose asks a server with these arguments, as a user.
func diagnose(t *testing.T, server *servers.Server, user string) (Diagnosis, error) {
	t.Helper()
	s, err := Open(t.Context(), Config{
		Addrs: []string{server.Addr}, Username: user, Prefix: t.Name(), Log: slog.New(slog.DiscardHandler),
		Password: func() (string, error) { return "secret", nil },
	})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	return s.Diagnose(t.Context())
}

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

// TestDiagnoseOfOthers: what is set otherwise is told, and so is an alarm.
func TestDiagnoseOfOthers(t *testing.T) {
	t.Parallel()
	server := ownRedis(t, t.TempDir(), "--appendonly", "no", "--maxmemory-policy", "allkeys-lru")
	if err := client(t, server).Set(t.Context(), newKeys(t.Name()).alarm, "it is lost", 0).Err(); err != nil {
		t.Fatal(err)
	}
	d, err := diagnose(t, server, "default")
	if err != nil || d.AppendOnly || d.Eviction != "allkeys-lru" || d.Alarm != "it is lost" {
		t.Errorf("got %+v, error %v", d, err)
	}
}
