package serving

import (
	"errors"
	"fmt"
	"unicode/utf8"
)

// MaxDescription bounds the descriptions of apps and versions, in bytes.
const MaxDescription = 1000

// checkDescription says what is wrong with a description, or nil. It is shown to clients that
// sees what it is of.
func checkDescription(text string) error {
	if len(text) > MaxDescription {
		return fmt.Errorf("description has %d bytes; at most %d are allowed", len(text), MaxDescription)
	}
	if !utf8.ValidString(text) {
		return errors.New("description must be text in UTF-8")
	}
	return nil
}
