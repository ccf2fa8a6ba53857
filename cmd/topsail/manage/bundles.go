package manage

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"path/filepath"
	"strings"

	"github.com/topsail-serving/topsail/cmd/topsail/config"
	"github.com/topsail-serving/topsail/internal/adapter/s3bucket"
	"github.com/topsail-serving/topsail/web/api"
	"github.com/topsail-serving/topsail/web/artifact"
)

// maxInRedis bounds all bundles in Redis, in bytes, where nothing is set: its memory is for
// the catalog before all.
const maxInRedis = 512 << 20

// Folder opens the folder of bundles.
func Folder(cfg *config.Config) (*artifact.Folder, error) {
	if at := cfg.Web.Bundles; at == "redis" || strings.Contains(at, "://") {
		return nil, errors.New("local mode keeps bundles in a folder: name one in web.bundles, or leave it out")
	}
	return artifact.OpenFolder(cmp.Or(cfg.Web.Bundles, ownFolder(cfg)))
}

func ownFolder(cfg *config.Config) string { return filepath.Join(cfg.DataDir, "bundles") }

// Bundles are those of a bucket. key signs their addresses; nil: they are not signed.
func Bundles(cfg *config.Config, bucket artifact.Bucket, key []byte) (*artifact.Store, error) {
	spool := filepath.Join(cfg.DataDir, "uploads")
	if _, ok := bucket.(*artifact.Folder); ok {
		spool = cmp.Or(cfg.Web.Bundles, ownFolder(cfg)) // where an upload needs a new name alone
	}
	return artifact.Open(artifact.Config{Bucket: bucket, Spool: spool, MaxBytes: int64(cfg.Web.MaxBundleBytes), MaxTotal: maxTotal(cfg), Key: key})
}

func maxTotal(cfg *config.Config) int64 {
	if cfg.Web.Bundles == "redis" && cfg.ByDefault("web.max_bundles_bytes") {
		return maxInRedis
	}
	return int64(cfg.Web.MaxBundlesBytes)
}

// Bucket opens where a cluster's bundles lie. inRedis keeps so many bytes of them.
func Bucket(cfg *config.Config, inRedis func(most int64) artifact.Bucket) (artifact.Bucket, error) {
	switch at := cfg.Web.Bundles; {
	case at == "redis":
		return inRedis(maxTotal(cfg)), nil
	case strings.Contains(at, "://"):
		return s3bucket.Open(at)
	}
	return Folder(cfg)
}

// Adopt brings the bundles of this machine's own folder into a store that lies elsewhere, as
// after a change of web.bundles. Those of the folder stay.
func Adopt(ctx context.Context, cfg *config.Config, into *artifact.Store, log *slog.Logger) error {
	if cfg.Web.Bundles == "" {
		return nil
	}
	folder, err := artifact.OpenFolder(ownFolder(cfg))
	if err != nil {
		return err
	}
	list, err := folder.List(ctx)
	for _, one := range list {
		if _, err := into.Get(ctx, one.Digest); !errors.Is(err, api.ErrNoBundle) {
			continue // it is there, or the store is unavailable: the next start tries again
		}
		content, _, err := folder.Open(ctx, one.Digest)
		if err != nil {
			return err
		}
		_, _, err = into.Put(ctx, io.NewSectionReader(content, 0, one.Size))
		if err := errors.Join(err, content.Close()); err != nil {
			log.Warn("cannot move a bundle of the old folder into the store", "bundle", one.Digest, "err", err)
			continue
		}
		log.Info("moved a bundle of the old folder into the store", "bundle", one.Digest)
	}
	if err != nil {
		return fmt.Errorf("the old folder of bundles: %w", err)
	}
	return nil
}
