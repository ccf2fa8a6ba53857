package gateway_test

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/topsail-serving/topsail/gateway"
	"github.com/topsail-serving/topsail/gateway/httpapi"
	"github.com/topsail-serving/topsail/serving"
	"github.com/topsail-serving/topsail/test/require"
	"github.com/topsail-serving/topsail/test/wait"
)

// A key holds from the catalog that has it to the one that has it not, even if nothing
// else of that one can be used. Clipper's page is served to who may read.
func TestKeysFollowTheCatalog(t *testing.T) {
	bubble(t, func(t *world) {
		catalogs := make(sequence)
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		defer func() { cancel(); <-ended }()
		ln := t.on.listen()
		g := gateway.New(t.Context(), gateway.Config{Dial: t.on.dial, Catalog: catalogs, Resolver: idle[[]serving.Endpoint]{}, HTTP: httpapi.Config{RequireKeys: true}})
		go func() { ended <- g.Run(ctx, ln) }()
		key, secret := serving.NewKey()
		key.Name, key.Role = "ann", serving.RoleOperator
		do := func(method, path, body string) (status int, answer string) {
			r, err := http.NewRequestWithContext(ctx, method, "http://"+ln.Addr().String()+path, strings.NewReader(body))
			require.NoError(t, err)
			r.Header.Set("X-Api-Key", secret)
			resp, err := t.client.Do(r)
			require.NoError(t, err)
			defer resp.Body.Close()
			b, err := io.ReadAll(resp.Body)
			require.NoError(t, err)
			return resp.StatusCode, string(b)
		}
		ask := func() int {
			status, _ := do("POST", "/double-it/predict", `{"input": [1.0]}`)
			return status
		}
		with := catalogOf(newVersion("m", "1"))
		with.Keys = map[string]*serving.Key{key.ID: key}
		catalogs <- with
		wait.Until(t, "an answer", func() bool { return ask() == http.StatusOK })

		status, text := do("GET", "/metrics", "")
		var page map[string][]map[string]map[string]string
		if err := json.Unmarshal([]byte(text), &page); err != nil || status != http.StatusOK {
			t.Fatalf("%d %s: %v", status, text, err)
		}
		counts := map[string]string{}
		for _, one := range page["counters"] {
			for name, values := range one {
				counts[name] = values["count"]
			}
		}
		if counts["app:double-it:num_predictions"] != "1" || counts["internal:aggregate_num_predictions"] != "1" {
			t.Errorf("%s", text)
		}

		bad := catalogOf(newVersion("m", "1"))
		bad.Apps["double-it"].Policy.Kind = "oracle"
		catalogs <- bad
		wait.Until(t, "a refusal", func() bool { return ask() == http.StatusUnauthorized })
	})
}
