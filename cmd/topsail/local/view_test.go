package local

import (
	"log/slog"
	"testing"
	"time"

	"github.com/topsail-serving/topsail/internal/adapter/filestore"
	"github.com/topsail-serving/topsail/serving"
	"github.com/topsail-serving/topsail/serving/catalog"
)

// TestJob: the command of a version has what is secret in it only for those who may see that.
func TestJob(t *testing.T) {
	store, err := filestore.Open(t.TempDir(), slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	v := serving.Version{
		ModelID: serving.ModelID{Model: "m", Version: "1"}, InputType: serving.Doubles,
		Container: serving.Container{Command: []string{"python", "m.py", "--from", "https://u:s3cret@models.example/m"}, Dir: "/srv"},
	}
	if _, err := store.Apply(t.Context(), catalog.PutVersion{Version: v}, 0); err != nil {
		t.Fatal(err)
	}
	system := &view{store: store, fleet: fleetWith(t, time.Hour)}
	for secrets, want := range map[bool]string{
		true:  "cd /srv && python m.py --from https://u:s3cret@models.example/m",
		false: "cd /srv && python m.py --from https://(hidden)@models.example/m",
	} {
		if job, err := system.job(t.Context(), v.ModelID, secrets); err != nil || job.Text != want {
			t.Errorf("secrets %t: got %q, error %v; want %q", secrets, job.Text, err, want)
		}
	}
}
