package models

import (
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/topsail-serving/topsail/internal/apiclient"
	"github.com/topsail-serving/topsail/test/pipes"
	"github.com/topsail-serving/topsail/test/require"
)

// TestTransfersEnd whatever the server does.
func TestTransfersEnd(t *testing.T) {
	says := func(w http.ResponseWriter, text string) {
		_, _ = io.WriteString(w, text) // who has left needs nothing
		_ = http.NewResponseController(w).Flush()
	}
	for name, one := range map[string]struct {
		serve http.HandlerFunc
		after time.Duration
		want  string
	}{
		"nothing": {func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }, silentFor, "nothing came for 30s"},
		"a half": {func(w http.ResponseWriter, r *http.Request) {
			time.Sleep(silentFor / 2)
			says(w, "half")
			<-r.Context().Done()
		}, silentFor + silentFor/2, "nothing came for 30s"},
		"drops": {func(w http.ResponseWriter, r *http.Request) {
			for r.Context().Err() == nil {
				says(w, ".")
				select {
				case <-time.After(silentFor - time.Second):
				case <-r.Context().Done():
				}
			}
		}, fetchWithin, "it took longer than 15m0s"},
		"all": {func(w http.ResponseWriter, _ *http.Request) {
			says(w, "one ")
			time.Sleep(silentFor - time.Second)
			says(w, "two")
		}, silentFor - time.Second, ""},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var network pipes.Network
				models := network.Serve(t, one.serve)
				locations := Locations{Prefixes: []string{models}, Client: network.Client()}
				began := time.Now()
				content, err := locations.open(t.Context(), models+"/wine.py", false)
				if err == nil {
					_, err = io.ReadAll(content)
					_ = content.Close() // it was only read
				}
				if took := time.Since(began); took != one.after {
					t.Errorf("it took %v", took)
				}
				if one.want == "" && err != nil || one.want != "" && (err == nil || !strings.Contains(err.Error(), one.want) || lackOf(err) == nil) {
					t.Errorf("it ends with %v", err)
				}
			})
		})
	}
}

// TestUploadsEnd when they do not go on, however large the bundle is.
func TestUploadsEnd(t *testing.T) {
	file := filepath.Join(t.TempDir(), "bundle.zip")
	require.NoError(t, os.WriteFile(file, make([]byte, 1<<20), 0o600))
	stored := func(w http.ResponseWriter) { _, _ = io.WriteString(w, `{"digest": "sha256:00"}`) } // who has left needs nothing
	for name, one := range map[string]struct {
		serve http.HandlerFunc
		after time.Duration
		want  string
	}{
		"slow": {func(w http.ResponseWriter, r *http.Request) {
			for err := error(nil); err == nil; _, err = io.CopyN(io.Discard, r.Body, 1<<18) {
				time.Sleep(stalledFor - time.Second)
			}
			stored(w)
		}, 5 * (stalledFor - time.Second), ""},
		"checked for long": {func(w http.ResponseWriter, r *http.Request) {
			_, _ = io.Copy(io.Discard, r.Body)
			time.Sleep(stalledFor - time.Second)
			stored(w)
		}, stalledFor - time.Second, ""},
		"stalled":   {func(http.ResponseWriter, *http.Request) { time.Sleep(2 * stalledFor) }, stalledFor, "the upload did not go on for 5m0s"},
		"no answer": {func(_ http.ResponseWriter, r *http.Request) { _, _ = io.Copy(io.Discard, r.Body); <-r.Context().Done() }, stalledFor, "the upload did not go on for 5m0s"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var network pipes.Network
				own, err := apiclient.New(apiclient.Options{Server: network.Serve(t, one.serve), Prefix: "/api/v1", HTTP: network.Client()})
				require.NoError(t, err)
				api := management{own}
				began := time.Now()
				digest, err := api.upload(t.Context(), file)
				if took := time.Since(began); took != one.after {
					t.Errorf("it took %v", took)
				}
				time.Sleep(2 * stalledFor) // until the server is done, too
				if one.want == "" && (err != nil || digest != "sha256:00") || one.want != "" && (err == nil || !strings.Contains(err.Error(), one.want)) {
					t.Errorf("it ends with %q, %v", digest, err)
				}
			})
		})
	}
}
