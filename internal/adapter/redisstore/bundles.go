package redisstore

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/topsail-serving/topsail/serving/bundle"
)

const (
	chunkSize = 1 << 20 // bytes of a bundle in one key

	// abandoned is the age at which an upload that is not whole has surely ended.
	abandoned = 12 * time.Hour
)

// Bundles keeps small bundles in Redis, in pieces. Its methods may be called at the same
// time, by several processes.
type Bundles struct {
	store *Store
	most  int64
}

// Bundles are those in this Redis, of at most so many bytes altogether.
func (s *Store) Bundles(most int64) *Bundles { return &Bundles{s, most} }

// Put stores an archive. The index has it, as one that is on its way, before its pieces, so
// that what breaks off is found.
func (b *Bundles) Put(ctx context.Context, digest string, archive *os.File, size int64) error {
	hex, err := bundle.ParseDigest(digest)
	if err != nil {
		return fmt.Errorf("%w: %w", bundle.ErrNotStored, err)
	}
	if err := b.sweep(ctx); err != nil {
		return err
	}
	outcome, err := b.store.run(ctx, b.store.scripts.reserve, []string{b.store.keys.bundles}, hex, size, b.most)
	if err != nil {
		return fmt.Errorf("store the bundle: %w", err)
	}
	if outcome == full {
		return fmt.Errorf("%w: all bundles in Redis may have %d bytes; delete those that no version uses, or keep them in S3 or a shared folder (web.bundles)", bundle.ErrNoRoom, b.most)
	}
	if err := b.write(ctx, hex, archive, size); err != nil {
		return errors.Join(fmt.Errorf("store the bundle: %w", err), b.remove(context.WithoutCancel(ctx), hex, size))
	}
	_, err = b.store.run(ctx, b.store.scripts.reserve, []string{b.store.keys.bundles}, hex, size, b.most, "whole")
	return err
}

func (b *Bundles) write(ctx context.Context, hex string, archive *os.File, size int64) error {
	chunk := make([]byte, min(chunkSize, size))
	for n := range chunks(size) {
		read, err := archive.ReadAt(chunk, int64(n)*chunkSize)
		if err != nil && !errors.Is(err, io.EOF) {
			return err
		}
		err = b.store.call(ctx, func(ctx context.Context) error {
			return b.store.client.Set(ctx, b.store.keys.bundle(hex, n), chunk[:read], 0).Err()
		})
		if err != nil && strings.Contains(err.Error(), "OOM ") {
			return fmt.Errorf("%w: raise the maxmemory of Redis, or keep bundles elsewhere (web.bundles): %w", bundle.ErrNoRoom, err)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func chunks(size int64) int { return int((size + chunkSize - 1) / chunkSize) }

// entry is an entry of the index.
type entry struct {
	bundle.Stored
	whole bool
}

// List are the bundles that are whole.
func (b *Bundles) List(ctx context.Context) ([]bundle.Stored, error) {
	index, err := b.index(ctx)
	var list []bundle.Stored
	for _, one := range index {
		if one.whole {
			list = append(list, one.Stored)
		}
	}
	return list, err
}

func (b *Bundles) index(ctx context.Context) (list []entry, err error) {
	var fields map[string]string
	err = b.store.call(ctx, func(ctx context.Context) error {
		fields, err = b.store.client.HGetAll(ctx, b.store.keys.bundles).Result()
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("list bundles: %w", err)
	}
	for hex, text := range fields {
		if one, ok := parseStored(hex, text); ok {
			list = append(list, one)
		}
	}
	return list, nil
}

// parseStored reads SIZE CREATED STATE, the times in microseconds.
func parseStored(hex, text string) (entry, bool) {
	f := strings.Fields(text)
	if len(f) != 3 {
		return entry{}, false
	}
	size, errSize := strconv.ParseInt(f[0], 10, 64)
	micros, errTime := strconv.ParseInt(f[1], 10, 64)
	one := entry{bundle.Stored{Digest: "sha256:" + hex, Size: size, Created: time.UnixMicro(micros)}, f[2] == "whole"}
	return one, errSize == nil && errTime == nil && size >= 0
}

// Open opens an archive, whose pieces are read as they are asked for.
func (b *Bundles) Open(ctx context.Context, digest string) (bundle.Content, bundle.Stored, error) {
	hex, err := bundle.ParseDigest(digest)
	if err != nil {
		return nil, bundle.Stored{}, fmt.Errorf("%w: %w", bundle.ErrNotStored, err)
	}
	var text string
	err = b.store.call(ctx, func(ctx context.Context) error {
		text, err = b.store.client.HGet(ctx, b.store.keys.bundles, hex).Result()
		if errors.Is(err, redis.Nil) {
			return nil
		}
		return err
	})
	if err != nil {
		return nil, bundle.Stored{}, fmt.Errorf("open a bundle: %w", err)
	}
	one, ok := parseStored(hex, text)
	if !ok || !one.whole {
		return nil, bundle.Stored{}, fmt.Errorf("%w: %s", bundle.ErrNotStored, digest)
	}
	p := &pieces{ctx: ctx, of: b, hex: hex, size: one.Size, n: -1}
	return content{io.NewSectionReader(p, 0, one.Size)}, one.Stored, nil
}

type content struct{ *io.SectionReader }

func (content) Close() error { return nil }

// pieces reads an archive, one piece at a time.
type pieces struct {
	ctx  context.Context
	of   *Bundles
	hex  string
	size int64

	n     int // the piece that is in memory; -1: none is
	piece []byte
}

// ReadAt implements io.ReaderAt, for one reader at a time.
func (p *pieces) ReadAt(to []byte, off int64) (n int, err error) {
	for n < len(to) && off+int64(n) < p.size {
		at := off + int64(n)
		if err := p.load(int(at / chunkSize)); err != nil {
			return n, err
		}
		within := at % chunkSize
		if within >= int64(len(p.piece)) {
			return n, fmt.Errorf("a piece of the bundle is damaged: %w", io.ErrUnexpectedEOF)
		}
		n += copy(to[n:], p.piece[within:])
	}
	if n < len(to) {
		return n, io.EOF
	}
	return n, nil
}

func (p *pieces) load(n int) error {
	if p.n == n {
		return nil
	}
	return p.of.store.call(p.ctx, func(ctx context.Context) error {
		piece, err := p.of.store.client.Get(ctx, p.of.store.keys.bundle(p.hex, n)).Bytes()
		if errors.Is(err, redis.Nil) {
			return fmt.Errorf("a piece of it is missing: %w", bundle.ErrNotStored)
		}
		if err == nil {
			p.n, p.piece = n, piece
		}
		return err
	})
}

// Delete removes an archive.
func (b *Bundles) Delete(ctx context.Context, digest string) error {
	content, one, err := b.Open(ctx, digest)
	if err != nil {
		return err
	}
	content.Close()
	return b.remove(ctx, strings.TrimPrefix(digest, "sha256:"), one.Size)
}

// remove takes the pieces first: what is left when that breaks off is swept.
func (b *Bundles) remove(ctx context.Context, hex string, size int64) error {
	if _, err := b.store.run(ctx, b.store.scripts.reserve, []string{b.store.keys.bundles}, hex, size, b.most, "going"); err != nil {
		return fmt.Errorf("delete a bundle: %w", err)
	}
	for n := range chunks(size) {
		err := b.store.call(ctx, func(ctx context.Context) error { return b.store.client.Unlink(ctx, b.store.keys.bundle(hex, n)).Err() })
		if err != nil {
			return fmt.Errorf("delete a bundle: %w", err)
		}
	}
	return b.store.call(ctx, func(ctx context.Context) error { return b.store.client.HDel(ctx, b.store.keys.bundles, hex).Err() })
}

// sweep removes what broke off long ago.
func (b *Bundles) sweep(ctx context.Context) error {
	index, err := b.index(ctx)
	for _, one := range index {
		if !one.whole && time.Since(one.Created) > abandoned {
			err = errors.Join(err, b.remove(ctx, strings.TrimPrefix(one.Digest, "sha256:"), one.Size))
		}
	}
	return err
}

// Secret is a random text that all processes which share this Redis know, by a name.
func (s *Store) Secret(ctx context.Context, name, fresh string) (secret string, err error) {
	err = s.call(ctx, func(ctx context.Context) error {
		key := s.keys.secret(name)
		if err := s.client.SetNX(ctx, key, fresh, 0).Err(); err != nil {
			return err
		}
		secret, err = s.client.Get(ctx, key).Result()
		return err
	})
	return secret, err
}
