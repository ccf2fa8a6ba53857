package feedback

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"time"

	"github.com/topsail-serving/topsail/serving"
)

// firstMark is above every id of a query.
const firstMark = 1 << 62

// markOf is the record by which feedback with an id of its sender's is known when it is sent
// twice: that of a query which was never asked, of an app that cannot be. It lives as long as
// records of the app's answers, and like them among at most serving.MaxRecords.
func markOf(app *serving.App, id string, now time.Time) *serving.Record {
	hash := serving.HashInput(serving.Input{Type: serving.Strings, Data: []byte(id)})
	return &serving.Record{
		QueryID: firstMark | int64(binary.LittleEndian.Uint64(hash[:])>>2), App: app.Name + "\x00feedback",
		InputType: serving.Strings, InputHash: hash, At: now, Expires: now.Add(app.Policy.Record()), Learned: true,
	}
}

// isMark says whether an id is of a mark, and of no query.
func isMark(queryID int64) bool { return queryID >= firstMark }

// known says whether feedback of a mark has been learned.
func (j *Joiner) known(ctx context.Context, mark *serving.Record) (bool, error) {
	found, err := j.recorder.store.RecordOf(ctx, mark.App, mark.QueryID)
	switch {
	case errors.Is(err, serving.ErrNoRecord):
		return false, nil
	case err != nil:
		return false, fmt.Errorf("%w: look up whether feedback_id is known: %w", serving.ErrUnavailable, err)
	}
	return found.InputHash == mark.InputHash, nil
}
