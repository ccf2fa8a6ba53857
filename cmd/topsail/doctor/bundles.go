package doctor

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/topsail-serving/topsail/cmd/topsail/config"
	"github.com/topsail-serving/topsail/internal/check"
	"github.com/topsail-serving/topsail/serving/bundle"
	"github.com/topsail-serving/topsail/web/artifact"
)

// bundleFolder is where bundles lie on this machine, or "".
func bundleFolder(cfg *config.Config) string {
	switch at := cfg.Web.Bundles; {
	case at == "redis" || strings.Contains(at, "://"):
		return ""
	default:
		return cmp.Or(at, filepath.Join(cfg.DataDir, "bundles"))
	}
}

// reserve is what is left of a check's time to say how it went.
const reserve = 500 * time.Millisecond

// bundles compares the archives in a folder with their digests, the small ones first, as far
// as the time goes.
func bundles(ctx context.Context, dir string) []check.Finding {
	const name = "bundles on disk"
	if dir == "" || missing(dir) {
		return nil
	}
	folder := artifact.FolderAt(dir)
	list, err := folder.List(ctx)
	if err != nil {
		return []check.Finding{check.Broken(ctx, name, err, "give the user of this process access to the folder, or set web.bundles")}
	}
	slices.SortFunc(list, func(a, b bundle.Stored) int { return cmp.Compare(a.Size, b.Size) })
	if end, ok := ctx.Deadline(); ok {
		var cancel context.CancelFunc
		ctx, cancel = context.WithDeadline(ctx, end.Add(-reserve))
		defer cancel()
	}
	var damaged []string
	compared := 0
	for _, one := range list {
		err := intact(ctx, folder, one.Digest)
		if ctx.Err() != nil {
			break
		}
		if compared++; err != nil {
			damaged = append(damaged, fmt.Sprintf("%s: %v", filepath.Base(folder.Path(one.Digest)), err))
		}
	}
	f := check.Good(name, "%d of %d in %s match their digests", compared-len(damaged), len(list), dir)
	if left := len(list) - compared; left > 0 {
		f.Detail += fmt.Sprintf("; the %d largest were not checked for lack of time, and each node checks them when it unpacks them", left)
	}
	if len(damaged) > 0 {
		f.State, f.Next = check.Failed, "upload these bundles again (`topsail artifact push`), which replaces them; replicas that have them unpacked keep running"
		f.Detail = strings.Join(damaged, "; ") + "; " + f.Detail
	}
	return []check.Finding{f}
}

// intact says what is wrong with an archive, or nil. It returns soon after ctx has ended.
func intact(ctx context.Context, folder *artifact.Folder, digest string) error {
	content, _, err := folder.Open(ctx, digest)
	if err != nil {
		return fmt.Errorf("it cannot be read: %w", err)
	}
	defer content.Close()
	defer context.AfterFunc(ctx, func() { _ = content.Close() })()
	got, err := bundle.Digest(io.Reader(content))
	switch {
	case err != nil:
		return fmt.Errorf("it cannot be read: %w", err)
	case got != digest:
		return fmt.Errorf("it was damaged after it was stored, and now has the digest %s", got)
	}
	return nil
}
