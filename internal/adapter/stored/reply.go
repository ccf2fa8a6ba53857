package stored

import (
	"encoding/json"
	"fmt"

	"github.com/topsail-serving/topsail/serving"
)

// EncodeReply is the text of a reply. One that says more than serving.MaxReply is an error.
func EncodeReply(r serving.Reply) ([]byte, error) {
	if size := r.Size(); size > serving.MaxReply {
		return nil, fmt.Errorf("a reply of %d bytes is too large to keep; %d are the most", size, serving.MaxReply)
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
