package contract

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/topsail-serving/topsail/serving/bundle"
	"github.com/topsail-serving/topsail/test/require"
)

// BundleStore is the seam of where bundles lie; package artifact says what it promises.
type BundleStore interface {
	Put(ctx context.Context, digest string, archive *os.File, size int64) error
	Open(ctx context.Context, digest string) (bundle.Content, bundle.Stored, error)
	List(ctx context.Context) ([]bundle.Stored, error)
	Delete(ctx context.Context, digest string) error
}

// Bundles runs the suite. open makes an empty store: another returns it as another process
// has it.
func Bundles(t *testing.T, open func(t *testing.T) (another func() BundleStore)) {
	tests := []struct {
		name string
		run  func(b bundles)
	}{
		{"nothing", bundles.nothing},
		{"kept", bundles.kept},
		{"kept again", bundles.again},
		{"replaced", bundles.replaced},
		{"deleted", bundles.deleted},
		{"read in parts", bundles.parts},
		{"what is no digest", bundles.noDigest},
		{"concurrent processes", bundles.concurrent},
		{"an ended context", bundles.ended},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			another := open(t)
			test.run(bundles{t, another(), another()})
		})
	}
}

type bundles struct {
	*testing.T
	one, other BundleStore
}

// content is an archive of n bytes that are always the same, and its digest.
func (b bundles) content(n int) (data []byte, digest string) {
	data = make([]byte, n)
	random := rand.New(rand.NewPCG(1, uint64(n)))
	for i := range data {
		data[i] = byte(random.Uint32())
	}
	return data, fmt.Sprintf("sha256:%x", sha256.Sum256(data))
}

// put stores an archive that lies somewhere else.
func (b bundles) put(store BundleStore, data []byte, digest string) error {
	b.Helper()
	file, err := os.CreateTemp(b.TempDir(), "archive")
	require.NoError(b, err)
	defer file.Close()
	if _, err := file.Write(data); err != nil {
		b.Fatal(err)
	}
	return store.Put(b.Context(), digest, file, int64(len(data)))
}

func (b bundles) keep(data []byte, digest string) {
	b.Helper()
	require.NoError(b, b.put(b.one, data, digest))
}

// holds wants these digests in the list of both.
func (b bundles) holds(want ...string) {
	b.Helper()
	want = slices.Sorted(slices.Values(want))
	for _, store := range []BundleStore{b.one, b.other} {
		list, err := store.List(b.Context())
		var got []string
		for _, one := range list {
			got = append(got, one.Digest)
		}
		if slices.Sort(got); err != nil || !slices.Equal(got, want) {
			b.Errorf("the list is %v, error %v; want %v", got, err, want)
		}
	}
}

// reads wants the content, at another process.
func (b bundles) reads(data []byte, digest string) {
	b.Helper()
	content, stored, err := b.other.Open(b.Context(), digest)
	require.NoError(b, err)
	defer content.Close()
	if age := time.Since(stored.Created).Abs(); stored.Digest != digest || stored.Size != int64(len(data)) || age > time.Minute {
		b.Errorf("it is %+v, of %d bytes", stored, len(data))
	}
	if got, err := io.ReadAll(content); err != nil || !bytes.Equal(got, data) {
		b.Errorf("read %d bytes of %d, error %v", len(got), len(data), err)
	}
}

func (b bundles) nothing() {
	b.holds()
	_, digest := b.content(1)
	_, _, err := b.one.Open(b.Context(), digest)
	for _, err := range []error{err, b.one.Delete(b.Context(), digest)} {
		if !errors.Is(err, bundle.ErrNotStored) {
			b.Errorf("error is %v", err)
		}
	}
}

func (b bundles) kept() {
	small, first := b.content(7)
	large, second := b.content(3<<20 + 5)
	b.keep(small, first)
	b.keep(large, second)
	b.holds(first, second)
	b.reads(small, first)
	b.reads(large, second)
}

func (b bundles) again() {
	data, digest := b.content(1 << 20)
	b.keep(data, digest)
	b.keep(data, digest)
	b.holds(digest)
	b.reads(data, digest)
}

// replaced is what is uploaded in place of an archive that was damaged: flipped, cut or emptied.
func (b bundles) replaced() {
	data, digest := b.content(2<<20 + 7)
	flipped := bytes.Clone(data)
	flipped[1<<20+1] ^= 1
	for _, damaged := range [][]byte{flipped, data[:1<<20+3], data[:1]} {
		b.keep(damaged, digest)
		b.reads(damaged, digest)
		b.keep(data, digest)
		b.reads(data, digest)
	}
}

func (b bundles) deleted() {
	data, digest := b.content(2<<20 + 1)
	b.keep(data, digest)
	require.NoError(b, b.other.Delete(b.Context(), digest))
	b.holds()
	if err := b.one.Delete(b.Context(), digest); !errors.Is(err, bundle.ErrNotStored) {
		b.Errorf("error is %v", err)
	}
	b.keep(data, digest)
	b.reads(data, digest)
}

func (b bundles) parts() {
	data, digest := b.content(2<<20 + 100)
	b.keep(data, digest)
	content, _, err := b.one.Open(b.Context(), digest)
	require.NoError(b, err)
	defer content.Close()
	for _, at := range []int64{0, 1<<20 - 3, 2<<20 + 90, 5} {
		got := make([]byte, 10)
		if n, err := content.ReadAt(got, at); err != nil && !errors.Is(err, io.EOF) || !bytes.Equal(got[:n], data[at:at+int64(n)]) || n != 10 {
			b.Errorf("at %d: read %d bytes, error %v", at, n, err)
		}
	}
	if at, err := content.Seek(-4, io.SeekEnd); err != nil || at != int64(len(data))-4 {
		b.Fatalf("at %d, error %v", at, err)
	}
	if got, err := io.ReadAll(content); err != nil || !bytes.Equal(got, data[len(data)-4:]) {
		b.Errorf("the end is %q, error %v", got, err)
	}
}

func (b bundles) noDigest() {
	for _, digest := range []string{"", "sha256:../secret", "../secret", "sha256:" + strings.Repeat("0", 63), strings.Repeat("0", 64)} {
		_, _, err := b.one.Open(b.Context(), digest)
		for _, err := range []error{err, b.one.Delete(b.Context(), digest), b.put(b.one, []byte("x"), digest)} {
			if !errors.Is(err, bundle.ErrNotStored) {
				b.Errorf("%q: error is %v", digest, err)
			}
		}
	}
	b.holds()
}

func (b bundles) concurrent() {
	var all sync.WaitGroup
	var digests []string
	for n := range 4 {
		data, digest := b.content(1<<20 + n)
		digests = append(digests, digest)
		for _, store := range []BundleStore{b.one, b.other} {
			all.Go(func() {
				if err := b.put(store, data, digest); err != nil {
					b.Error(err)
				}
			})
		}
	}
	all.Wait()
	b.holds(digests...)
	for n, digest := range digests {
		data, _ := b.content(1<<20 + n)
		b.reads(data, digest)
	}
}

func (b bundles) ended() {
	data, digest := b.content(100)
	b.keep(data, digest)
	ctx, cancel := context.WithCancel(b.Context())
	cancel()
	content, _, err := b.one.Open(ctx, digest)
	if err == nil {
		_, err = io.ReadAll(content) // a folder needs nobody to open a file
		content.Close()
	}
	if err != nil && !errors.Is(err, context.Canceled) {
		b.Errorf("error is %v", err)
	}
}
