package nomadfleet

import (
	"fmt"
	"net/http"
	"os"
	"strings"
	"sync"
)

// token is the token of a file, if there is one; else each call has the client's.
type token struct {
	file string

	mu    sync.Mutex
	value string
}

// current is the token as it was read last.
func (t *token) current() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.value
}

// reload reads the file again, and says whether it holds another token.
func (t *token) reload() (changed bool, err error) {
	if t.file == "" {
		return false, nil
	}
	text, err := os.ReadFile(t.file)
	if err != nil {
		return false, fmt.Errorf("nomad's token: %w", err)
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	old := t.value
	t.value = strings.TrimSpace(string(text))
	return t.value != old, nil
}

// withToken calls with the token, and once more with a new one where it is refused
// and the file has changed, as the files of workload identities do.
func withToken[T any](t *token, call func(token string) (T, error)) (T, error) {
	used := t.current()
	value, err := call(used)
	if status(err) != http.StatusForbidden {
		return value, err
	}
	if _, unread := t.reload(); unread != nil || t.current() == used {
		return value, err
	}
	return call(t.current())
}
