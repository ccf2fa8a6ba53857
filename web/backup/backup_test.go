package backup

import (
	"archive/tar"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/topsail-serving/topsail/gateway/state"
	"github.com/topsail-serving/topsail/internal/adapter/filestore"
	"github.com/topsail-serving/topsail/serving"
	"github.com/topsail-serving/topsail/serving/bundle"
	"github.com/topsail-serving/topsail/serving/catalog"
	"github.com/topsail-serving/topsail/test/require"
	"github.com/topsail-serving/topsail/web/api"
)

// place is a Topsail: a store and bundles, and what gateways have learned.
type place struct {
	store
	Service
	states *state.States
}

type store interface {
	Store
	AddUsage(ctx context.Context, report serving.UsageReport) error
	AddAudit(ctx context.Context, entry serving.AuditEntry) error
	Catalog() *serving.Catalog
	Close() error
}

// bundles are texts by their digests.
type bundles struct {
	mu  sync.Mutex
	all map[string]string
}

func digestOf(text string) string {
	sum := sha256.Sum256([]byte(text))
	return "sha256:" + hex.EncodeToString(sum[:])
}

func (b *bundles) Stored(context.Context) (list []bundle.Stored, err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for digest, text := range b.all {
		list = append(list, bundle.Stored{Digest: digest, Size: int64(len(text))})
	}
	return list, nil
}

func (b *bundles) Open(_ context.Context, digest string) (io.ReadSeekCloser, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	text, there := b.all[digest]
	if !there {
		return nil, bundle.ErrNotStored
	}
	return opened{strings.NewReader(text)}, nil
}

func (b *bundles) Put(_ context.Context, r io.Reader) (api.Artifact, bool, error) {
	text, err := io.ReadAll(r)
	if err == nil {
		b.mu.Lock()
		defer b.mu.Unlock()
		b.all[digestOf(string(text))] = string(text)
	}
	return api.Artifact{}, true, err
}

type opened struct{ *strings.Reader }

func (opened) Close() error { return nil }

type fatal interface {
	Fatal(args ...any)
	Helper()
}

func placeOf(s store, spool string) *place {
	return &place{store: s, Service: Service{Store: s, Bundles: &bundles{all: map[string]string{}}, Mode: "local", Release: "r", Spool: spool}}
}

func onDisk(t fatal, dir string) *place {
	s, err := filestore.Open(dir, slog.New(slog.DiscardHandler))
	require.NoError(t, err)
	return placeOf(s, dir)
}

func (p *place) take(t fatal, bundles bool) []byte {
	t.Helper()
	a, err := p.Make(context.Background(), bundles)
	require.NoError(t, err)
	defer a.Close()
	var text bytes.Buffer
	require.NoError(t, a.Write(context.Background(), &text))
	return text.Bytes()
}

func (p *place) bring(t fatal, archive []byte, dryRun bool) api.Restored {
	t.Helper()
	report, err := p.Restore(context.Background(), bytes.NewReader(archive), serving.Author{Who: "anna"}, dryRun)
	require.NoError(t, err)
	return report
}

// holding is all that a place holds, in words.
type holding struct {
	objects, states, usage, entries, bundles map[string]string
}

func (p *place) holds(t fatal) holding {
	t.Helper()
	h := holding{map[string]string{}, map[string]string{}, map[string]string{}, map[string]string{}, map[string]string{}}
	if kept, ok := p.Bundles.(*bundles); ok {
		h.bundles = maps.Clone(kept.all)
	}
	cat, err := p.store.Apply(context.Background(), catalog.All{}, 0)
	require.NoError(t, err)
	docs, err := catalog.Diff(&serving.Catalog{}, cat)
	require.NoError(t, err)
	for _, doc := range docs {
		h.objects[doc.Kind+"/"+doc.Key] = string(doc.JSON)
	}
	err = p.EachState(context.Background(), func(key serving.StateKey, text []byte) error { h.states[key.String()] = string(text); return nil })
	require.NoError(t, err)
	var objects []serving.UsageKey
	for name := range cat.Apps {
		objects = append(objects, serving.UsageKey{App: name})
	}
	usage, err := p.UsageOf(context.Background(), objects)
	require.NoError(t, err)
	for _, u := range usage {
		u.Since = u.Since.Truncate(time.Millisecond)
		text, _ := json.Marshal(u)
		h.usage[u.Key.String()] = string(text)
	}
	entries, err := p.entries(context.Background())
	require.NoError(t, err)
	for _, e := range entries {
		h.entries[fmt.Sprint(e.At.UnixNano(), e.Who, e.Action, e.Kind, e.Name, string(e.Before), string(e.After))] = ""
	}
	return h
}

// within says what of h is not in other as it is here.
func (h holding) within(other holding) error {
	for _, both := range [][2]map[string]string{{h.objects, other.objects}, {h.states, other.states}, {h.usage, other.usage}, {h.entries, other.entries}, {h.bundles, other.bundles}} {
		for name, want := range both[0] {
			if got, there := both[1][name]; !there || got != want {
				return fmt.Errorf("%s is %q, want %q", name, got, want)
			}
		}
	}
	return nil
}

// some is a place with a little of everything.
func some(t *testing.T) *place {
	t.Helper()
	p := onDisk(t, t.TempDir())
	t.Cleanup(func() { _ = p.Close() })
	digest := digestOf("bundle")
	if _, _, err := p.Bundles.Put(t.Context(), strings.NewReader("bundle")); err != nil {
		t.Fatal(err)
	}
	v := serving.Version{ModelID: serving.ModelID{Model: "m", Version: "1"}, InputType: serving.Doubles}
	v.Container.Bundle = digest
	hash := sha256.Sum256([]byte("k"))
	for _, change := range []catalog.Change{
		catalog.PutVersion{Version: v},
		catalog.PutApp{App: serving.App{Name: "a", InputType: serving.Doubles, SLO: serving.Duration(time.Second), Models: []string{"m"}}},
		catalog.AddKey{Key: serving.Key{ID: hex.EncodeToString(hash[:5]), Name: "anna", Role: serving.RoleAdmin, Hash: hash[:]}},
	} {
		if _, err := p.store.Apply(t.Context(), catalog.Signed{Change: change, By: serving.Author{Who: "anna"}}, 0); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := p.SwapState(t.Context(), serving.StateKey{App: "a", Kind: "exp3"}, 0, []byte("learned")); err != nil {
		t.Fatal(err)
	}
	return p
}

// TestWithoutBundles lists them only; where they are not, that is said.
func TestWithoutBundles(t *testing.T) {
	p := some(t)
	archive := p.take(t, false)
	report := onDisk(t, t.TempDir()).bring(t, archive, true)
	if want := []string{digestOf("bundle")}; !slices.Equal(report.Missing, want) || report.Bundles != 0 || !strings.Contains(report.Warnings[0], "1 bundles are neither in the backup nor here") {
		t.Errorf("%+v", report)
	}
	if report := p.bring(t, archive, true); len(report.Missing) != 0 {
		t.Errorf("%+v", report)
	}
}

// A bundle that was damaged in the store is named, and is not in a backup as if it were whole.
func TestADamagedBundleIsNotBackedUp(t *testing.T) {
	p := some(t)
	p.Bundles.(*bundles).all[digestOf("bundle")] = "bundlf"
	if _, err := p.Make(t.Context(), true); !errors.Is(err, api.ErrRefused) || !strings.Contains(err.Error(), digestOf("bundle")) || !strings.Contains(err.Error(), "upload it again") {
		t.Errorf("error is %v", err)
	}
	if b, err := p.Make(t.Context(), false); err != nil {
		t.Error(err)
	} else if err := b.Close(); err != nil {
		t.Error(err)
	}
}

// A bundle that is gone from the store is listed, as one that is not in the backup.
func TestAMissingBundleIsSaid(t *testing.T) {
	p := some(t)
	clear(p.Bundles.(*bundles).all)
	archive := p.take(t, true)
	report := onDisk(t, t.TempDir()).bring(t, archive, true)
	if !slices.Equal(report.Missing, []string{digestOf("bundle")}) || !strings.Contains(report.Warnings[0], "1 bundles are neither in the backup nor here") {
		t.Errorf("%+v", report)
	}
}

// TestWarnings tells who restores what that means for keys.
func TestWarnings(t *testing.T) {
	p := some(t)
	archive := p.take(t, true)
	report := onDisk(t, t.TempDir()).bring(t, archive, true)
	if text := strings.Join(report.Warnings, "\n"); !strings.Contains(text, "from then on requests need one") || !strings.Contains(text, "become valid again") {
		t.Errorf("warnings %q", report.Warnings)
	}
	other := some(t)
	hash := sha256.Sum256([]byte("k"))
	if _, err := other.store.Apply(t.Context(), catalog.RevokeKey{ID: hex.EncodeToString(hash[:5])}, 0); err != nil {
		t.Fatal(err)
	}
	report = p.bring(t, other.take(t, true), true)
	if text := strings.Join(report.Warnings, "\n"); !strings.Contains(text, `the key "anna" of this request is not in the backup`) {
		t.Errorf("warnings %q", report.Warnings)
	}
}

// TestDamagedBackups are refused, and change nothing.
func TestDamagedBackups(t *testing.T) {
	p, random := some(t), rand.New(rand.NewPCG(1, 2))
	archive := p.take(t, true)
	good, err := Open(bytes.NewReader(archive), int64(len(archive)))
	require.NoError(t, err)
	refused := 0
	for range 3000 {
		data := slices.Clone(archive)
		data[random.IntN(len(data))] ^= 1 << random.IntN(8)
		f, err := Open(bytes.NewReader(data), int64(len(data)))
		switch {
		case err == nil && !reflect.DeepEqual(f.Contents, good.Contents): // else it was in what is not used
			t.Fatalf("opened with %+v", f.Contents)
		case err != nil && !errors.Is(err, api.ErrBackupInvalid):
			t.Fatal(err)
		case err != nil:
			refused++
		}
	}
	if refused < 500 {
		t.Errorf("%d of 3000 are refused", refused)
	}
	for size := 0; size < len(archive)-1536; size += 97 { // the last block may be partly empty, and two empty ones follow
		if _, err := Open(bytes.NewReader(archive[:size]), int64(size)); !errors.Is(err, api.ErrBackupInvalid) {
			t.Fatalf("cut at %d: %v", size, err)
		}
	}
	before := p.holds(t)
	_, err = p.Restore(t.Context(), bytes.NewReader(archive[:len(archive)/2]), serving.Author{Who: "anna"}, false)
	if !errors.Is(err, api.ErrBackupInvalid) || !reflect.DeepEqual(p.holds(t), before) {
		t.Errorf("restored by halves: %v", err)
	}
	if left, _ := filepath.Glob(filepath.Join(p.Spool, "upload-*")); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
}

// TestFormat holds the archive to its description: any tar reads it.
func TestFormat(t *testing.T) {
	archive := some(t).take(t, true)
	in, names := tar.NewReader(bytes.NewReader(archive)), []string{}
	for {
		h, err := in.Next()
		if err == io.EOF {
			break
		}
		require.NoError(t, err)
		names = append(names, h.Name)
	}
	want := []string{"contents.json", "state.jsonl.gz", "bundles/" + strings.TrimPrefix(digestOf("bundle"), "sha256:") + ".zip", "SHA256SUMS"}
	if !slices.Equal(names, want) {
		t.Errorf("members %q, want %q", names, want)
	}
}

// TestFirstRelease restores what the first release with backups wrote.
func TestFirstRelease(t *testing.T) {
	archive, err := os.ReadFile("testdata/format1.tar")
	require.NoError(t, err)
	p := onDisk(t, t.TempDir())
	defer p.Close()
	p.bring(t, archive, false)
	h := p.holds(t)
	if len(h.objects) != 4 || h.states[`"a" "exp3" "" ""`] != "learned" || h.bundles[digestOf("bundle")] != "bundle" || len(h.entries) < 4 {
		t.Errorf("%+v", h)
	}
}

// TestNewerFormat says which release to use.
func TestNewerFormat(t *testing.T) {
	p := some(t)
	a, err := p.Make(t.Context(), false)
	require.NoError(t, err)
	defer a.Close()
	a.(*Archive).Format = format + 1
	var text bytes.Buffer
	require.NoError(t, a.Write(t.Context(), &text))
	_, err = Open(bytes.NewReader(text.Bytes()), int64(text.Len()))
	if !errors.Is(err, api.ErrBackupInvalid) || !strings.Contains(err.Error(), "its format is 2, and this topsail reads up to 1: use the release that made it, r") {
		t.Errorf("%v", err)
	}
}

// FuzzOpen gives any bytes: what is opened can be read to its end.
func FuzzOpen(f *testing.F) {
	archive, err := os.ReadFile("testdata/format1.tar")
	require.NoError(f, err)
	f.Add(archive)
	f.Add(archive[:600])
	f.Fuzz(func(t *testing.T, data []byte) {
		file, err := Open(bytes.NewReader(data), int64(len(data)))
		if err != nil {
			return
		}
		for _, err := range file.Items() {
			require.NoError(t, err)
		}
	})
}
