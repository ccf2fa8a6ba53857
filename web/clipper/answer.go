package clipper

import (
	"encoding/json"
	"fmt"
)

// nothing is the answer about what does not exist.
const nothing = "{}"

func answer(v any) (string, error) {
	text, err := json.Marshal(v)
	if err != nil {
		return "", fmt.Errorf("make the answer: %w", err)
	}
	return string(text), nil
}

// list makes an empty list one in JSON, too.
func list(texts []string) []string {
	if texts == nil {
		return []string{}
	}
	return texts
}
