package archive

import (
	"fmt"
	"regexp"
)

// File is what the head says about a file.
type File struct {
	SHA256 string `json:"sha256"` // 64 hexadecimal digits in lower case
	Size   int64  `json:"size"`   // bytes, unpacked
}

var sum = regexp.MustCompile(`^[0-9a-f]{64}$`)

func (f File) check() error {
	if !sum.MatchString(f.SHA256) {
		return fmt.Errorf("its sha256 is %q, not 64 hexadecimal digits in lower case", f.SHA256)
	}
	if f.Size < 0 {
		return fmt.Errorf("its size is %d, below zero", f.Size)
	}
	return nil
}
