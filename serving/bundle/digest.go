package bundle

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"regexp"
	"strings"
)

const digestPrefix = "sha256:"

var digest = regexp.MustCompile(`^` + digestPrefix + `([0-9a-f]{64})$`)

// Digest reads an archive and returns its digest, "sha256:" and 64 hexadecimal digits.
func Digest(r io.Reader) (string, error) {
	hash := sha256.New()
	if _, err := io.Copy(hash, r); err != nil {
		return "", err
	}
	return digestPrefix + hex.EncodeToString(hash.Sum(nil)), nil
}

// ParseDigest returns the 64 hexadecimal digits of a digest. They are safe as a file's name.
func ParseDigest(s string) (hex string, err error) {
	if !digest.MatchString(s) {
		return "", fmt.Errorf("%.80q is not the digest of a bundle, which is sha256:… with 64 hexadecimal digits in lower case", s)
	}
	return strings.TrimPrefix(s, digestPrefix), nil
}
