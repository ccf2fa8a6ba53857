package archive

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
)

const (
	endLength    = 22 // of the record that ends an archive, without a comment
	endMark      = 0x06054b50
	maxName      = 512
	maxDirectory = (MaxFiles + 1) * (maxName + 256) // with what packers add to an entry
)

// checkEnd reads the record that ends an archive before the library does, which trusts
// the number and the length in it. The directory has to stand right before it: then
// nothing precedes the archive, nothing follows it, and it has no second directory in
// the form that archives above 4 GiB need.
func checkEnd(r io.ReaderAt, size int64) error {
	switch {
	case size > MaxArchive:
		return fmt.Errorf("the archive has %d bytes; at most %d are allowed", size, int64(MaxArchive))
	case size < endLength:
		return errors.New("this is not a zip archive: it is too short")
	}
	var end [endLength]byte
	if _, err := r.ReadAt(end[:], size-endLength); err != nil && !errors.Is(err, io.EOF) {
		return fmt.Errorf("cannot read the archive's end: %w", err)
	}
	count := binary.LittleEndian.Uint16(end[10:])
	length, offset := int64(binary.LittleEndian.Uint32(end[12:])), int64(binary.LittleEndian.Uint32(end[16:]))
	switch {
	case binary.LittleEndian.Uint32(end[:]) != endMark || end[20] != 0 || end[21] != 0:
		return errors.New("this is not a zip archive, it is truncated, or it has a comment, which is not allowed")
	case count > MaxFiles+1:
		return fmt.Errorf("the archive has %d files or more; at most %d are allowed", count-1, MaxFiles)
	case length > maxDirectory:
		return fmt.Errorf("the archive's directory has %d bytes; at most %d are allowed", length, maxDirectory)
	case offset+length != size-endLength:
		return errors.New("the archive's directory is not where its end says: something is before it, after it or missing")
	}
	return nil
}
