package httpapi

import (
	"strings"
	"testing"

	"github.com/topsail-serving/topsail/internal/access"
	"github.com/topsail-serving/topsail/internal/access/testca"
	"github.com/topsail-serving/topsail/test/require"
)

const goodKey = "key-0123456789abcdef"

func newKeys(t testing.TB) *access.Keys {
	t.Helper()
	keys, err := access.KeysFile(testca.Write(t, t.TempDir(), "keys", []byte("alice:"+goodKey)), nil)
	require.NoError(t, err)
	return keys
}

func TestPredictAsksForAKey(t *testing.T) {
	r := start(t, Config{Keys: newKeys(t)}, newFake())
	c := r.dial(t)
	defer c.Close()
	for _, tt := range []struct {
		name   string
		header []string
		status int
	}{
		{"none", nil, 401},
		{"X-Api-Key", []string{"X-Api-Key: " + goodKey}, 200},
		{"lower case", []string{"x-api-key: " + goodKey}, 200},
		{"bearer", []string{"Authorization: Bearer " + goodKey}, 200},
		{"beside a proxy's", []string{"Authorization: Basic eDp5", "X-Api-Key: " + goodKey}, 200},
		{"wrong", []string{"X-Api-Key: " + goodKey + "x"}, 401},
		{"a part", []string{"X-Api-Key: " + goodKey[:19]}, 401},
		{"basic", []string{"Authorization: Basic " + goodKey}, 401},
		{"in a cookie", []string{"Cookie: X-Api-Key=" + goodKey}, 401},
		{"10 kB", []string{"X-Api-Key: " + strings.Repeat("k", 10_000)}, 401},
		{"10 kB, right at first", []string{"Authorization: Bearer " + goodKey + strings.Repeat("k", 10_000)}, 401},
	} {
		for _, path := range []string{"/doubles/predict", "/doubles/predict/"} { // one connection for all
			got := c.do(t, "POST", path, `{"input":[1]}`, tt.header...)
			if got.status != tt.status {
				t.Errorf("%s, %s: %d %s, want %d", tt.name, path, got.status, got.body, tt.status)
			}
			if got.status != 401 {
				continue
			}
			if class, cause := got.refusal(t); class != "Unauthorized" || !strings.Contains(cause, "Authorization: Bearer KEY") {
				t.Errorf("%s: %s", tt.name, got.body)
			}
			if challenge := got.header.Get("WWW-Authenticate"); challenge != `Bearer realm="topsail"` {
				t.Errorf("%s: WWW-Authenticate %q", tt.name, challenge)
			}
		}
	}
	if got := c.do(t, "GET", "/health", ""); got.status != 200 {
		t.Errorf("health: %d", got.status)
	}
	if n := len(r.core.queries()); n != 8 {
		t.Errorf("%d queries came through, want 8", n)
	}
	if text := r.log.String(); text != "" {
		t.Errorf("log: %s", text)
	}
}

// Who has no key learns neither which apps there are nor what is wrong in a query.
func TestTheKeyComesFirst(t *testing.T) {
	r := start(t, Config{Keys: newKeys(t), MaxBodyBytes: 1 << 20}, newFake())
	for name, got := range map[string]reply{
		"unknown app": r.do(t, "POST", "/nothing/predict", `{"input":[1]}`),
		"not JSON":    r.do(t, "POST", "/doubles/predict", `{`),
		"encoding":    r.do(t, "POST", "/doubles/predict", `x`, "Content-Encoding: br"),
		"timeout":     r.do(t, "POST", "/doubles/predict", `{"input":[1]}`, "X-Timeout-Ms: x"),
	} {
		if got.status != 401 {
			t.Errorf("%s: %d %s", name, got.status, got.body)
		}
	}
}
