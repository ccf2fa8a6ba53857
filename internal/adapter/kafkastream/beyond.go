package kafkastream

import (
	"encoding/base64"
	"encoding/binary"
	"math"
	"strings"
)

// The metadata of a committed offset says what is done beyond it: how many offsets from there on are not
// done, how many behind them are, and so on, each as a varint.
const (
	beyondVersion = "topsail/1 " // of which other versions, and others, know nothing
	// mostMetadata is half of what brokers allow by default, in bytes (offset.metadata.max.bytes).
	mostMetadata = 2048
	// mostBeyond bounds how far beyond an offset something may be done.
	mostBeyond = math.MaxInt64 / 4
)

// encodeBeyond says which offsets below an end are not done; empty where all that are done come first.
func encodeBeyond(undone []extent, end int64) string {
	var runs []byte
	for i, e := range undone {
		next := end
		if i+1 < len(undone) {
			next = undone[i+1].from
		}
		if next > e.to {
			runs = binary.AppendUvarint(runs, uint64(e.to-e.from))
			runs = binary.AppendUvarint(runs, uint64(next-e.to))
		}
	}
	if len(runs) == 0 {
		return ""
	}
	return beyondVersion + base64.RawStdEncoding.EncodeToString(runs)
}

// decodeBeyond is which offsets from a committed one to an end are not done. Metadata that means something else
// says nothing.
func decodeBeyond(metadata string, committed int64) (undone []extent, end int64) {
	text, is := strings.CutPrefix(metadata, beyondVersion)
	runs, err := base64.RawStdEncoding.Strict().DecodeString(text)
	if !is || err != nil || committed < 0 {
		return nil, committed
	}
	end = committed
	for len(runs) > 0 {
		not, n := binary.Uvarint(runs)
		if n <= 0 {
			return nil, committed
		}
		done, m := binary.Uvarint(runs[n:])
		if m <= 0 || not == 0 || done == 0 || not > mostBeyond || done > mostBeyond || end > mostBeyond {
			return nil, committed
		}
		undone = append(undone, extent{end, end + int64(not)})
		end += int64(not) + int64(done)
		runs = runs[n+m:]
	}
	return undone, end
}
