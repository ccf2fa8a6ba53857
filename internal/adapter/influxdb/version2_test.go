//go:build servers

package influxdb

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"testing"

	"github.com/topsail-serving/topsail/test/contract"
	"github.com/topsail-serving/topsail/test/require"
	"github.com/topsail-serving/topsail/test/servers"
)

const version2Token = "the-token-of-the-test"

// TestDemandContractOfVersion2 runs against the real InfluxDB 2.
func TestDemandContractOfVersion2(t *testing.T) {
	t.Parallel()
	port, err := servers.FreePort()
	require.NoError(t, err)
	s, err := servers.InfluxDB2(t.TempDir(), port, version2Token)
	require.NoError(t, err)
	t.Cleanup(s.Stop)
	require.NoError(t, s.Start(t.Context()))
	contract.Demand(t, func(t *testing.T) contract.DemandStore {
		return open(t, Config{
			URL: "http://" + s.Addr, Org: servers.InfluxOrg, Bucket: bucket(t, s.Addr), Log: testLog(t),
			Token: func(bool) []byte { return []byte(version2Token) },
		})
	})
}

// bucket makes one of its own for a test.
func bucket(t *testing.T, addr string) string {
	t.Helper()
	var orgs struct {
		Orgs []struct{ ID string }
	}
	version2(t, http.MethodGet, "http://"+addr+"/api/v2/orgs", nil, &orgs)
	name := fmt.Sprintf("test%d", databases.Add(1))
	body, err := json.Marshal(map[string]any{"orgID": orgs.Orgs[0].ID, "name": name, "retentionRules": []any{}})
	require.NoError(t, err)
	version2(t, http.MethodPost, "http://"+addr+"/api/v2/buckets", body, nil)
	return name
}

func version2(t *testing.T, method, url string, body []byte, into any) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, url, bytes.NewReader(body))
	require.NoError(t, err)
	req.Header.Set("Authorization", "Token "+version2Token)
	resp, err := http.DefaultClient.Do(req)
	require.NoError(t, err)
	defer resp.Body.Close()
	if resp.StatusCode >= 300 {
		t.Fatalf("%s %s: %s", method, url, resp.Status)
	}
	if into != nil {
		require.NoError(t, json.NewDecoder(resp.Body).Decode(into))
	}
}
