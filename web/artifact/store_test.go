package artifact

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/fstest"
	"testing/iotest"
	"time"

	"github.com/topsail-serving/topsail/serving/bundle"
	"github.com/topsail-serving/topsail/test/contract"
	"github.com/topsail-serving/topsail/test/require"
	"github.com/topsail-serving/topsail/web/api"
)

var _ api.Artifacts = (*Store)(nil)

func pack(t *testing.T, content string) (data []byte, digest string) {
	t.Helper()
	var buf bytes.Buffer
	m := &bundle.Manifest{Runtime: "python", Python: "3.11", Entry: "model.pkl"}
	require.NoError(t, bundle.Write(&buf, m, fstest.MapFS{"model.pkl": {Data: []byte(content)}}))
	digest, err := bundle.Digest(bytes.NewReader(buf.Bytes()))
	require.NoError(t, err)
	return buf.Bytes(), digest
}

func open(t *testing.T, dir string, maxBytes int64) *Store {
	t.Helper()
	folder, err := OpenFolder(dir)
	require.NoError(t, err)
	s, err := Open(Config{Bucket: folder, Spool: dir, MaxBytes: maxBytes})
	require.NoError(t, err)
	return s
}

func put(t *testing.T, s *Store, data []byte) (api.Artifact, bool) {
	t.Helper()
	a, created, err := s.Put(t.Context(), bytes.NewReader(data))
	require.NoError(t, err)
	return a, created
}

// held is how many bytes are counted.
func held(t *testing.T, s *Store) int64 {
	t.Helper()
	n, err := s.total(t.Context(), "")
	require.NoError(t, err)
	return n + s.uploading.Load()
}

// files lists what is in the folder.
func files(t *testing.T, dir string) []string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	names := make([]string, len(entries))
	for i, entry := range entries {
		names[i] = entry.Name()
	}
	return names
}

func TestPutGetListDelete(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "new", "store")
	s := open(t, dir, 0)
	data, digest := pack(t, "one")
	a, created := put(t, s, data)
	if !created || a.Digest != digest || a.Size != int64(len(data)) || a.Created.IsZero() || !bytes.Contains(a.Manifest, []byte("model.pkl")) {
		t.Errorf("created %v: %+v", created, a)
	}
	if again, created := put(t, s, data); created || !again.Created.Equal(a.Created) {
		t.Error("it was created twice")
	}
	other, otherDigest := pack(t, "two")
	put(t, s, other)

	s = open(t, dir, 0) // a restart
	all, err := s.List(t.Context())
	if want := slices.Sorted(slices.Values([]string{digest, otherDigest})); err != nil || !slices.Equal(all, want) {
		t.Fatalf("list is %v, %v", all, err)
	}
	r, err := s.Open(t.Context(), digest)
	require.NoError(t, err)
	defer r.Close()
	require.NoError(t, s.Delete(t.Context(), digest))
	if got, err := io.ReadAll(r); err != nil || !bytes.Equal(got, data) {
		t.Errorf("who was reading it read %d bytes, %v", len(got), err)
	}
	_, errGet := s.Get(t.Context(), digest)
	_, errOpen := s.Open(t.Context(), digest)
	for _, err := range []error{errGet, errOpen, s.Delete(t.Context(), digest)} {
		if !errors.Is(err, api.ErrNoBundle) {
			t.Errorf("error is %v", err)
		}
	}
	if _, err := s.Get(t.Context(), otherDigest); err != nil {
		t.Error(err)
	}
	if got := held(t, s); got != int64(len(other)) {
		t.Errorf("it counts %d bytes, and holds %d", got, len(other))
	}
}

func TestNothingIsLeftOfWhatIsRefused(t *testing.T) {
	good, _ := pack(t, strings.Repeat("weights", 100))
	damaged := bytes.Clone(good)
	damaged[bytes.Index(damaged, []byte("weights"))] ^= 1
	broken := errors.New("the client went away")
	gone, cancel := context.WithCancelCause(t.Context())
	cancel(broken)
	for name, c := range map[string]struct {
		ctx  context.Context
		body io.Reader
		want error
	}{
		"no archive":    {t.Context(), strings.NewReader("hello"), api.ErrBundleInvalid},
		"nothing":       {t.Context(), strings.NewReader(""), api.ErrBundleInvalid},
		"cut off":       {t.Context(), bytes.NewReader(good[:len(good)-1]), api.ErrBundleInvalid},
		"damaged":       {t.Context(), bytes.NewReader(damaged), api.ErrBundleInvalid},
		"too large":     {t.Context(), io.MultiReader(bytes.NewReader(good), strings.NewReader("x")), api.ErrBundleTooLarge},
		"a broken pipe": {t.Context(), io.MultiReader(bytes.NewReader(good[:9]), iotest.ErrReader(broken)), broken},
		"an end":        {gone, bytes.NewReader(good), broken},
	} {
		dir := t.TempDir()
		s := open(t, dir, int64(len(good)))
		if _, _, err := s.Put(c.ctx, c.body); !errors.Is(err, c.want) {
			t.Errorf("%s: error is %v, want %v", name, err, c.want)
		}
		if left := files(t, dir); len(left) > 0 || held(t, s) != 0 {
			t.Errorf("%s: %v is left, %d bytes are counted", name, left, held(t, s))
		}
		if _, created := put(t, s, good); !created {
			t.Errorf("%s: then a good one was not created", name)
		}
	}
}

// TestADamagedBundleIsRepaired: to upload it again replaces what was damaged in the store.
func TestADamagedBundleIsRepaired(t *testing.T) {
	good, digest := pack(t, strings.Repeat("weights", 100))
	dir := t.TempDir()
	s := open(t, dir, 0)
	put(t, s, good)
	path := filepath.Join(dir, strings.TrimPrefix(digest, "sha256:")+".zip")
	damaged := bytes.Clone(good)
	damaged[bytes.Index(damaged, []byte("weights"))] ^= 1
	require.NoError(t, os.WriteFile(path, damaged, 0o600))
	if _, created := put(t, s, good); !created {
		t.Error("the upload was discarded")
	}
	if stored, err := os.ReadFile(path); err != nil || !bytes.Equal(stored, good) {
		t.Errorf("the archive is as damaged as it was; error %v", err)
	}
	if _, created := put(t, s, good); created {
		t.Error("an intact bundle was stored again")
	}
}

func TestFull(t *testing.T) {
	one, digest := pack(t, "one")
	two, _ := pack(t, "two")
	s := open(t, t.TempDir(), 0)
	s.MaxTotal = int64(len(one)+len(two)) - 1
	put(t, s, one)
	if _, _, err := s.Put(t.Context(), bytes.NewReader(two)); !errors.Is(err, api.ErrBundlesFull) || !strings.Contains(err.Error(), "delete bundles") {
		t.Errorf("error is %v", err)
	}
	require.NoError(t, s.Delete(t.Context(), digest))
	if _, created := put(t, s, two); !created {
		t.Error("there is room, and it was not created")
	}
}

func TestTheDiskIsFull(t *testing.T) {
	s := open(t, t.TempDir(), 0)
	full, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
	require.NoError(t, err)
	u := &upload{store: s, file: full, hash: sha256.New()}
	if err := u.receive(t.Context(), strings.NewReader("x")); !errors.Is(err, api.ErrBundlesFull) {
		t.Errorf("error is %v", err)
	}
	full.Close()
}

func TestOpenRemovesWhatACrashLeft(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir, 0)
	data, digest := pack(t, "one")
	put(t, s, data)
	u, err := s.begin(t.Context())
	require.NoError(t, err)
	require.NoError(t, u.receive(t.Context(), strings.NewReader("half of a bundle")))
	if len(files(t, dir)) != 2 {
		t.Fatal("there is no upload to break off")
	}
	if open(t, dir, 0); len(files(t, dir)) != 2 {
		t.Error("an upload went that another process may be at")
	}
	long := time.Now().Add(-2 * abandoned)
	require.NoError(t, os.Chtimes(u.file.Name(), long, long))
	s = open(t, dir, 0)
	if left := files(t, dir); len(left) != 1 || "sha256:"+strings.TrimSuffix(left[0], ".zip") != digest {
		t.Errorf("there is %v", left)
	}
	if held(t, s) != int64(len(data)) {
		t.Errorf("%d bytes are counted of %d", held(t, s), len(data))
	}
}

func TestDigestsAreNoPaths(t *testing.T) {
	outside := t.TempDir()
	s := open(t, filepath.Join(outside, "store"), 0)
	data, digest := pack(t, "one")
	secret := filepath.Join(outside, "secret.zip")
	require.NoError(t, os.WriteFile(secret, data, 0o600))
	for _, d := range []string{"sha256:../secret", "../secret", "", "sha256:" + strings.Repeat("../", 20) + "secret", strings.ToUpper(digest)} {
		_, errGet := s.Get(t.Context(), d)
		_, errOpen := s.Open(t.Context(), d)
		for _, err := range []error{errGet, errOpen, s.Delete(t.Context(), d)} {
			if !errors.Is(err, api.ErrNoBundle) {
				t.Errorf("%q: error is %v", d, err)
			}
		}
	}
}

func TestADamagedBundleIsRepairedByAnUpload(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir, 0)
	data, digest := pack(t, "one")
	put(t, s, data)
	path := filepath.Join(dir, strings.TrimPrefix(digest, "sha256:")+".zip")
	require.NoError(t, os.WriteFile(path, data[:len(data)/2], 0o600))
	s = open(t, dir, 0)
	if _, err := s.Get(t.Context(), digest); !errors.Is(err, api.ErrBundleInvalid) {
		t.Errorf("error is %v", err)
	}
	require.NoError(t, os.WriteFile(filepath.Join(dir, "other.zip"), data, 0o600))
	if all, err := s.List(t.Context()); err != nil || !slices.Equal(all, []string{digest}) {
		t.Errorf("list is %v, %v", all, err)
	}
	if _, created := put(t, s, data); !created || held(t, s) != int64(len(data)) {
		t.Errorf("created %v, %d bytes are counted of %d", created, held(t, s), len(data))
	}
	if _, err := s.Get(t.Context(), digest); err != nil {
		t.Error(err)
	}
}

// What is found to be damaged is told until it is uploaded again, or deleted; others are shown.
func TestDamageIsACondition(t *testing.T) {
	data, digest := pack(t, "one")
	for name, damage := range map[string]func(path string) error{
		"cut":      func(path string) error { return os.Truncate(path, int64(len(data)/2)) },
		"emptied":  func(path string) error { return os.Truncate(path, 0) },
		"a folder": func(path string) error { return errors.Join(os.Remove(path), os.Mkdir(path, 0o700)) },
	} {
		for _, upload := range []bool{true, false} {
			dir := t.TempDir()
			put(t, open(t, dir, 0), data)
			s := open(t, dir, 0)
			path := filepath.Join(dir, strings.TrimPrefix(digest, "sha256:")+".zip")
			require.NoError(t, damage(path))
			if _, err := s.Get(t.Context(), digest); !errors.Is(err, api.ErrBundleInvalid) {
				t.Errorf("%s: error is %v", name, err)
			}
			if err := s.Condition(); err == nil || !strings.Contains(err.Error(), digest) || !strings.Contains(err.Error(), "upload it again") {
				t.Errorf("%s: the condition is %v", name, err)
			}
			if upload {
				put(t, s, data)
			} else if err := s.Delete(t.Context(), digest); err != nil {
				t.Errorf("%s: %v", name, err)
			}
			if err := s.Condition(); err != nil {
				t.Errorf("%s: the condition is %v", name, err)
			}
		}
	}
}

// unreadable is a bucket whose files belong to somebody else.
type unreadable struct{ Bucket }

func (unreadable) Open(context.Context, string) (bundle.Content, bundle.Stored, error) {
	return nil, bundle.Stored{}, &os.PathError{Op: "open", Path: "x.zip", Err: syscall.EACCES}
}

func TestAnUnreadableBundleIsNamed(t *testing.T) {
	s := open(t, t.TempDir(), 0)
	s.Bucket = unreadable{s.Bucket}
	_, digest := pack(t, "one")
	if _, err := s.Get(t.Context(), digest); !errors.Is(err, api.ErrBundleInvalid) || !strings.Contains(err.Error(), "give the user of this process access to its file") {
		t.Errorf("error is %v", err)
	}
}

func TestPutsAtOnce(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir, 0)
	var wg sync.WaitGroup
	var total int64
	var firsts [3]atomic.Int32
	for i := range firsts {
		data, _ := pack(t, fmt.Sprint("model ", i))
		total += int64(len(data))
		for range 4 {
			wg.Go(func() {
				_, created, err := s.Put(t.Context(), bytes.NewReader(data))
				if err != nil {
					t.Error(err)
				}
				if created {
					firsts[i].Add(1)
				}
			})
		}
	}
	wg.Wait()
	for i := range firsts {
		if n := firsts[i].Load(); n != 1 {
			t.Errorf("bundle %d was created %d times", i, n)
		}
	}
	if n := len(files(t, dir)); n != len(firsts) || held(t, s) != total {
		t.Errorf("%d files, %d bytes counted of %d", n, held(t, s), total)
	}
}

func TestFullDisk(t *testing.T) {
	for err, full := range map[error]bool{syscall.ENOSPC: true, syscall.EDQUOT: true, syscall.EIO: false} {
		wrapped := &os.PathError{Op: "sync", Path: "upload", Err: err}
		if got := fullDisk(wrapped); errors.Is(got, bundle.ErrNoRoom) != full || !errors.Is(got, err) {
			t.Errorf("%v is %v", err, got)
		}
	}
	if err := fullDisk(nil); err != nil {
		t.Error(err)
	}
}

func TestFolderContract(t *testing.T) {
	contract.Bundles(t, func(t *testing.T) func() contract.BundleStore {
		dir := t.TempDir()
		return func() contract.BundleStore {
			folder, err := OpenFolder(dir)
			require.NoError(t, err)
			return folder
		}
	})
}

// The store says that it is full until there is room again.
func TestFullIsACondition(t *testing.T) {
	one, digest := pack(t, "one")
	two, _ := pack(t, "two")
	s := open(t, t.TempDir(), 0)
	s.MaxTotal = int64(len(one))
	put(t, s, one)
	if err := s.Full(); err != nil {
		t.Error(err)
	}
	if _, _, err := s.Put(t.Context(), bytes.NewReader(two)); !errors.Is(err, api.ErrBundlesFull) {
		t.Errorf("error is %v", err)
	}
	if err := s.Full(); err == nil || !strings.Contains(err.Error(), "delete bundles") {
		t.Errorf("error is %v", err)
	}
	require.NoError(t, s.Delete(t.Context(), digest))
	if err := s.Full(); err != nil {
		t.Error(err)
	}
}

// An address that one process signs is good at all of them for a while.
func TestAddresses(t *testing.T) {
	now := time.Now()
	dir := t.TempDir()
	one, other, stranger := open(t, dir, 0), open(t, dir, 0), open(t, dir, 0)
	one.Key, other.Key, stranger.Key = []byte("key"), []byte("key"), []byte("other")
	address, err := one.Address(t.Context(), "sha256:a", now)
	require.NoError(t, err)
	query, err := url.ParseQuery(strings.TrimPrefix(address, "?"))
	require.NoError(t, err)
	if err := other.Signed("sha256:a", query, now.Add(addressLasts-time.Second)); err != nil {
		t.Error(err)
	}
	for name, err := range map[string]error{
		"too late":         other.Signed("sha256:a", query, now.Add(addressLasts+time.Second)),
		"another bundle":   other.Signed("sha256:b", query, now),
		"another key":      stranger.Signed("sha256:a", query, now),
		"none":             other.Signed("sha256:a", nil, now),
		"a later end":      other.Signed("sha256:a", url.Values{"expires": {"9999999999"}, "signature": query["signature"]}, now),
		"without a secret": open(t, dir, 0).Signed("sha256:a", query, now),
	} {
		if err == nil {
			t.Errorf("%s: it is good", name)
		}
	}
	if address, err := open(t, dir, 0).Address(t.Context(), "sha256:a", now); address != "" || err != nil {
		t.Errorf("without a key: %q, %v", address, err)
	}
}
