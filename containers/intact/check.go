package intact

import (
	"context"
	"maps"
	"path/filepath"
	"slices"
	"sync"
	"time"
)

// SmallBytes is what a folder may have whose digests are compared each time: reading so much
// takes about as long as an interpreter takes to start.
const SmallBytes = 256 << 20

// comparedEvery is how often the digests of a larger folder are compared at least.
const comparedEvery = 24 * time.Hour

// Change is what is not as the record says.
type Change struct {
	Files []string // that are not as they were, in order
	Extra []string // that are not of the folder, in order
}

// Check compares a folder with its record. Where that is gone, nothing is known of the folder, and known is
// false. all asks for all digests.
func Check(ctx context.Context, dir string, all bool) (c Change, known bool, err error) {
	r := read(dir)
	if r == nil {
		return c, false, ctx.Err()
	}
	all = all || r.bytes() <= SmallBytes || time.Since(r.Compared) > comparedEvery
	next := Record{Compared: r.Compared, Files: map[string]File{}}
	if all {
		next.Compared = time.Now()
	}
	var mu sync.Mutex
	err = each(ctx, slices.Sorted(maps.Keys(r.Files)), func(name string) error {
		f, same := r.Files[name].compare(ctx, filepath.Join(dir, name), all)
		mu.Lock()
		defer mu.Unlock()
		if next.Files[name] = f; !same {
			c.Files = append(c.Files, name)
		}
		return nil
	})
	if err != nil {
		return Change{}, true, err
	}
	slices.Sort(c.Files)
	c.Extra = r.extra(dir)
	stale := r.Compared.IsZero() || time.Since(r.Compared) > comparedEvery || !maps.Equal(r.Files, next.Files)
	if len(c.Files) == 0 && stale {
		_ = next.write(dir) // without it the next check compares all again
	}
	return c, true, nil
}

// compare looks at the file at path, and says whether it is f. all compares the digest even
// where size and time are f's.
func (f File) compare(ctx context.Context, path string, all bool) (now File, same bool) {
	now, err := look(path)
	if err != nil || now.Size != f.Size || f.Mode&^now.Mode != 0 {
		return now, false
	}
	now.SHA256 = f.SHA256
	if !all && now.Time == f.Time {
		return now, true
	}
	got, err := sum(ctx, path)
	return now, err == nil && got == f.SHA256
}

func (r *Record) bytes() (n int64) {
	for _, f := range r.Files {
		n += f.Size
	}
	return n
}

// extra are the files of a folder that the record does not have. A folder that cannot be read
// has none.
func (r *Record) extra(dir string) []string {
	names, _ := list(dir)
	return slices.DeleteFunc(names, func(name string) bool {
		_, ok := r.Files[name]
		return ok
	})
}
