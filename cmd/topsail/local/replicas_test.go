package local

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/topsail-serving/topsail/cmd/topsail/services"
	"github.com/topsail-serving/topsail/serving"
	"github.com/topsail-serving/topsail/test/require"
	"github.com/topsail-serving/topsail/test/wait"
	"github.com/topsail-serving/topsail/web/api"
)

// TestLogsOfAReplicaThatEnded: its file stays, and says whose it is.
func TestLogsOfAReplicaThatEnded(t *testing.T) {
	f := fleetWith(t, time.Hour)
	r := replicas{fleet: f, services: &services.Services{}}
	v := &serving.Version{
		ModelID: serving.ModelID{Model: "a-b", Version: "1"}, InputType: serving.Doubles,
		Container: serving.Container{Command: []string{"sh", "-c", "echo it runs; exec sleep 60"}},
	}
	read := func() string {
		t.Helper()
		logs, err := r.Logs(t.Context(), "a-b:1~0", api.LogQuery{Lines: 10})
		require.NoError(t, err)
		defer logs.Close()
		text, err := io.ReadAll(logs)
		require.NoError(t, err)
		return string(text)
	}

	require.NoError(t, f.SetCount(t.Context(), v, 0, serving.JobChange{Count: 1}))
	wait.Until(t, "its first line", func() bool { return strings.Contains(read(), "it runs") }, read)
	require.NoError(t, f.Remove(t.Context(), v.ModelID, serving.JobChange{Index: 1}))
	wait.Until(t, "its end", func() bool { return len(f.members()) == 0 }, read)
	if of, err := r.Ended(t.Context(), "a-b:1~0"); err != nil || of != v.ModelID {
		t.Errorf("it was of %v: %v", of, err)
	}
	if text := read(); !strings.Contains(text, "it runs") {
		t.Errorf("its log is %q", text)
	}
	logs, err := r.Logs(t.Context(), "a-b:1~0", api.LogQuery{Follow: true})
	require.NoError(t, err)
	if _, err := io.ReadAll(logs); err != nil || logs.Close() != nil {
		t.Errorf("what is followed does not end: %v", err)
	}
}

// TestLogsOfWhatWasNoReplica: an id leads to no other file, nor to the log of another version.
func TestLogsOfWhatWasNoReplica(t *testing.T) {
	f := fleetWith(t, time.Hour)
	r := replicas{fleet: f, services: &services.Services{}}
	require.NoError(t, os.MkdirAll(f.logs(), 0o755))
	for _, name := range []string{"a-b:1~0.log", "~0.log", "a:1~x.log", "a:1.log", "../secret.log", "../a:1~0.log"} {
		require.NoError(t, os.WriteFile(filepath.Join(f.logs(), name), []byte("secret"), 0o600))
	}
	for _, id := range []string{"", "~0", "a:1", "a:1~x", "a:1~0", "a:b-1~0", "a-b:1~00", "a-b:1~+0", "a-b:1~0~0", "../secret", "../a:1~0", "a:../a~0", "/a:1~0"} {
		if _, err := r.Ended(t.Context(), id); !errors.Is(err, api.ErrNoReplica) {
			t.Errorf("%q was a replica: %v", id, err)
		}
		if _, err := r.Logs(t.Context(), id, api.LogQuery{}); !errors.Is(err, api.ErrNoReplica) {
			t.Errorf("%q has logs: %v", id, err)
		}
	}
}
