package admin

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"strings"
	"unicode/utf8"
)

const maxInputBytes = 64 << 20

// inputArg reads an input: JSON or plain text as it stands, of standard input for -, or of
// a file for @FILE. With raw it is the base64 of the bytes instead.
func (k *call) inputArg(arg string, raw bool) (json.RawMessage, error) {
	content := []byte(arg)
	path, isFile := strings.CutPrefix(arg, "@")
	if arg == "-" {
		path, isFile = arg, true
	}
	if isFile {
		var err error
		if content, err = k.readFile(path, maxInputBytes); err != nil {
			return nil, err
		}
	}
	if raw {
		return json.Marshal(base64.StdEncoding.EncodeToString(content))
	}
	return parseValue(content)
}

// parseValue reads JSON. Plain text that is not valid JSON is a string.
func parseValue(text []byte) (json.RawMessage, error) {
	trimmed := bytes.TrimSpace(text)
	if len(trimmed) == 0 {
		return nil, misused("the input is missing: give JSON such as [1.5, 2], text, @FILE, or - for standard input")
	}
	if json.Valid(trimmed) {
		return trimmed, nil
	}
	if !utf8.Valid(trimmed) {
		return nil, misused("the input is neither JSON nor text: use --bytes for bytes")
	}
	if strings.ContainsRune("[{\"-+.0123456789", rune(trimmed[0])) {
		return nil, misused("the input begins like JSON but is not valid JSON: %w", json.Unmarshal(trimmed, new(any)))
	}
	return json.Marshal(string(trimmed))
}
