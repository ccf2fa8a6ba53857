package redisstore

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strconv"
	"strings"

	"github.com/topsail-serving/topsail/serving"
	"github.com/topsail-serving/topsail/serving/catalog"
)

// format is the version of the layout. Within a format, fields, kinds of fields
// and JSON fields may be added; what breaks older releases is a new one.
const format = 1

// Fields of the catalog's hash that are no documents, which have "KIND/KEY".
const (
	formatField   = "format"
	epochField    = "epoch"
	revisionField = "revision"
	writeField    = "write"
	epochPrefix   = "lineage/" // and the older epoch: a succession
)

// reading is what Redis held at one moment.
type reading struct {
	at           position
	same         bool              // it is where the reader knew it to be; the rest is not read
	newest       string            // the id of the newest change in the log
	writer       string            // of the revision that the reader knew; "": the log does not tell
	fields       map[string]string // all of the hash
	epochHistory epochHistory
}

// errUnreadable says that there is a catalog which this release cannot read.
var errUnreadable = errors.New("the catalog in redis cannot be read")

// read reads Redis, for one who knows the catalog at a position. With an
// errUnreadable there is a reading, too.
func (s *Store) read(ctx context.Context, known position) (*reading, error) {
	result, err := s.run(ctx, s.scripts.read, []string{s.keys.catalog, s.keys.log}, known.Epoch, known.Revision, known.Write)
	if err != nil {
		return nil, err
	}
	r := newReading(result)
	if r.same {
		r.at = known
		return r, nil
	}
	if err := r.decodeHead(); err != nil {
		return r, fmt.Errorf("%w: %w", errUnreadable, err)
	}
	return r, nil
}

// newReading takes in the answer of read.lua, which is ours: it has the right types.
func newReading(result any) *reading {
	answer := result.([]any)
	pairs := answer[3].([]any)
	r := &reading{
		same:   answer[0].(int64) == 1,
		newest: answer[1].(string),
		writer: answer[2].(string),
		fields: make(map[string]string, len(pairs)/2),
	}
	for pair := range slices.Chunk(pairs, 2) {
		r.fields[pair[0].(string)] = pair[1].(string)
	}
	return r
}

// decodeHead decodes what is not documents.
func (r *reading) decodeHead() (err error) {
	if r.fields[epochField] == "" {
		return nil // what may be there without it is no catalog
	}
	if f, err := strconv.Atoi(r.fields[formatField]); err != nil || f > format {
		return fmt.Errorf("its format is %q, and this topsail knows up to %d; use the release that wrote it", r.fields[formatField], format)
	}
	r.at = position{Epoch: r.fields[epochField], Write: r.fields[writeField]}
	revision := r.fields[revisionField]
	r.at.Revision, err = strconv.ParseUint(revision, 10, 64)
	if err != nil || revision != strconv.FormatUint(r.at.Revision, 10) { // scripts compare the text
		return fmt.Errorf("its revision is %q", revision)
	}
	r.epochHistory = epochHistory{}
	for field, value := range r.fields {
		if epoch, ok := strings.CutPrefix(field, epochPrefix); ok {
			var end succession
			if err := json.Unmarshal([]byte(value), &end); err != nil {
				return fmt.Errorf("field %s: %w", field, err)
			}
			r.epochHistory[epoch] = end
		}
	}
	return nil
}

// catalog builds the catalog. What a newer release has added is skipped.
func (r *reading) catalog() (*serving.Catalog, error) {
	if r.at.Epoch == "" {
		return catalog.Decode(0, func(func(catalog.Document) bool) {})
	}
	cat, err := catalog.Decode(r.at.Revision, r.documents())
	if err != nil {
		return nil, fmt.Errorf("%w: %w; upgrade this topsail where a newer one wrote it, or delete its key in Redis and run `topsail restore`", errUnreadable, err)
	}
	return cat, nil
}

func (r *reading) documents() iter.Seq[catalog.Document] {
	return func(yield func(catalog.Document) bool) {
		for field, value := range r.fields {
			kind, key, isDocument := strings.Cut(field, "/") // or one of ours: Decode skips what it does not know
			if isDocument && !yield(catalog.Document{Kind: kind, Key: key, JSON: []byte(value)}) {
				return
			}
		}
	}
}
