package archive

import (
	"archive/zip"
	"errors"
	"fmt"
	"path"
)

const (
	encrypted = 1 << 0 // flags of an entry
	strong    = 1 << 6
	masked    = 1 << 13

	typeMask    = 0o170000 // of a Unix mode, in the upper half of an entry's attributes
	typeRegular = 0o100000
)

// directory checks all entries by themselves and against each other.
func directory(entries []*zip.File) (map[string]*zip.File, error) {
	if len(entries) > MaxFiles+1 {
		return nil, fmt.Errorf("the archive has %d files; at most %d are allowed", len(entries)-1, MaxFiles)
	}
	byName := make(map[string]*zip.File, len(entries))
	folded := make(map[string]string, len(entries))
	var total uint64
	for _, entry := range entries {
		if err := checkEntry(entry); err != nil {
			return nil, fmt.Errorf("file %q: %w", entry.Name, err)
		}
		if other, ok := folded[fold(entry.Name)]; ok {
			return nil, fmt.Errorf("the names of the files %q and %q differ only in case", other, entry.Name)
		}
		byName[entry.Name], folded[fold(entry.Name)] = entry, entry.Name
		if total += entry.UncompressedSize64; total > MaxUnpacked {
			return nil, fmt.Errorf("the files have more than %d bytes together", int64(MaxUnpacked))
		}
	}
	for name := range byName {
		for dir := path.Dir(name); dir != "."; dir = path.Dir(dir) {
			if file, ok := folded[fold(dir)]; ok {
				return nil, fmt.Errorf("%q is a file, and the folder of %q", file, name)
			}
		}
	}
	return byName, nil
}

func checkEntry(entry *zip.File) error {
	if err := checkName(entry.Name); err != nil {
		return err
	}
	kind := entry.ExternalAttrs >> 16 & typeMask
	size, packed := entry.UncompressedSize64, entry.CompressedSize64
	switch {
	case entry.NonUTF8:
		return errors.New("its name is not in UTF-8")
	case kind != 0 && kind != typeRegular || !entry.Mode().IsRegular():
		return errors.New("it is a link, a folder or a device: only regular files may be in the archive")
	case entry.Flags&(encrypted|strong|masked) != 0:
		return errors.New("it is encrypted")
	case entry.Method != zip.Store && entry.Method != zip.Deflate:
		return fmt.Errorf("it is compressed with method %d: use deflate, or store", entry.Method)
	case size > MaxUnpacked: // before sizes are added up
		return fmt.Errorf("it has more than %d bytes", int64(MaxUnpacked))
	case entry.Method == zip.Store && size != packed:
		return fmt.Errorf("it is stored uncompressed with %d bytes, but declares %d", packed, size)
	case size > freeRatio && size/maxRatio > packed:
		return fmt.Errorf("it unpacks to more than %d times its size: use store for it", maxRatio)
	}
	return nil
}

// executable says whether the archive has the file as a program.
func executable(entry *zip.File) bool { return entry.Mode()&0o111 != 0 }
