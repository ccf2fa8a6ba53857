package archive

import (
	"errors"
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

const maxPart = 255 // bytes of one part of a name, as file systems have it

// checkName says why a file cannot have this name, or nil. A good one names the same
// file below a folder on every system.
func checkName(name string) error {
	switch {
	case name == "" || len(name) > maxName:
		return fmt.Errorf("its name has %d bytes: 1 to %d are allowed", len(name), maxName)
	case !utf8.ValidString(name):
		return errors.New("its name is not in UTF-8")
	case strings.ContainsFunc(name, unicode.IsControl):
		return errors.New("its name has a control character")
	case strings.Contains(name, `\`):
		return errors.New(`its name has a backslash: separate folders with "/"`)
	case len(name) > 1 && name[1] == ':' && (name[0]|0x20) >= 'a' && (name[0]|0x20) <= 'z':
		return errors.New("its name begins with a drive letter")
	case strings.HasPrefix(name, "/"):
		return errors.New("its name is absolute: names are relative to the archive's root")
	case strings.HasSuffix(name, "/"):
		return errors.New("it is a folder: only files may be in the archive")
	}
	for part := range strings.SplitSeq(name, "/") {
		if part == "" || part == "." || part == ".." {
			return fmt.Errorf("its name has the part %q", part)
		}
		if len(part) > maxPart {
			return fmt.Errorf("its name has a part of %d bytes; at most %d are allowed", len(part), maxPart)
		}
	}
	return nil
}

// fold is the same for names that differ only by case.
func fold(name string) string {
	return strings.Map(func(r rune) rune {
		least := r
		for next := unicode.SimpleFold(r); next != r; next = unicode.SimpleFold(next) {
			least = min(least, next)
		}
		return least
	}, name)
}
