package stored

import (
	"encoding/json"
	"fmt"

	"topsail/serving"
)

// MaxReply bounds what a reply says: its header and body, in bytes.
const MaxReply = 1 << 20

// EncodeReply is the text of a reply. One that says more than MaxReply is an error.
func EncodeReply(r serving.Reply) ([]byte, error) {
	size := len(r.Body)
	for name, value := range r.Header {
		size += len(name) + len(value)
	}
	if size > MaxReply {
		return nil, fmt.Errorf("a reply of %d bytes is too large to keep; %d are the most", size, MaxReply)
	}
	text, err := json.Marshal(r)
	if err != nil {
		return nil, fmt.Errorf("encode a reply: %w", err)
	}
	return text, nil
}

// DecodeReply reads what EncodeReply wrote.
func DecodeReply(text []byte) (*serving.Reply, error) {
	var r serving.Reply
	if err := json.Unmarshal(text, &r); err != nil {
		return nil, fmt.Errorf("decode a reply: %w", err)
	}
	return &r, nil
}
