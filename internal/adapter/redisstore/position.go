package redisstore

import (
	"crypto/rand"
	"errors"
	"fmt"
)

// position is where in its history a catalog is; the zero value is before it.
type position struct {
	Epoch    string `json:"epoch"` // drawn by the first write, and by each Restore and Accept
	Revision uint64 `json:"revision"`
	Write    string `json:"write"` // drawn by the write that made the revision
}

// next is the position of a write on top of p: in the same epoch, if there is one.
func (p position) next(revision uint64) position {
	if p.Epoch == "" {
		return newEpoch(revision)
	}
	return position{p.Epoch, revision, rand.Text()}
}

func newEpoch(revision uint64) position { return position{rand.Text(), revision, rand.Text()} }

// ErrLost says that Redis holds less than it did: it was flushed, or restored from
// an old copy.
var ErrLost = errors.New("redis was flushed or restored from an old copy")

// lost is an ErrLost that says what to do.
func lost(known position, format string, args ...any) error {
	return fmt.Errorf("%w: it holds %s, and held revision %d before; run `topsail restore` to write revision %d back, or `topsail restore --accept` to take what is in Redis",
		ErrLost, fmt.Sprintf(format, args...), known.Revision, known.Revision)
}

// follows says whether a Store that knows a catalog may go on to what was read:
// nil, or an ErrLost.
func (r *reading) follows(known position) error {
	switch {
	case known.Epoch == "":
		return nil
	case r.at.Epoch == "":
		return lost(known, "no catalog")
	case r.at.Epoch != known.Epoch && r.epochHistory.leads(known, r.at.Epoch):
		return nil
	case r.at.Epoch != known.Epoch:
		return lost(known, "another catalog, at revision %d", r.at.Revision)
	case r.at.Revision < known.Revision:
		return lost(known, "revision %d", r.at.Revision)
	case r.writer != "" && r.writer != known.Write:
		return lost(known, "revision %d, which was written after an older one than that", r.at.Revision)
	}
	return nil
}
