package conformance

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/getkin/kin-openapi/openapi3"

	"github.com/topsail-serving/topsail/test/openapi"
	"github.com/topsail-serving/topsail/test/require"
)

// request is one of the contract's, with the status that it is to have.
type request struct {
	operation, path, body string // the path with its query
	status                int
	headers               []string // names and values
}

const (
	app     = `{"name":"a","description":"about a","input_type":"doubles","latency_slo_micros":1000,"default_output":"0","models":["m"],"cold_start_micros":2000,"output_type":"number","policy":{"kind":"best"},"weight":2,"cache":{"off":true,"round":0.5,"ttl_micros":9},"example":"[1,2]","require_key":true,"limit":{"per_second":5,"burst":2},"labels":["l"]}`
	version = `{"version":"1","description":"the first","input_type":"doubles","labels":["l"],"replicas":2,"scale":{"min":0,"max":3,"metric":"rate","target":5,"utilisation":0.5,"idle_micros":5,"step_up":2,"step_down":2,"cooldown_up_micros":1,"cooldown_down_micros":1,"dead_band":0.1},"batch":{"strategy":"fixed","max_size":4,"delay_micros":10},"resources":{"cpu":1,"memory_mb":2,"gpu":{"count":1,"device":"nvidia/gpu","memory_mb":3,"runtime":"nvidia"}},"command":["c"],"dir":"/d","env":{"A":"b"},"watch":["w"],"protocol":"v2","connections":1,"driver":"exec","artifacts":[{"source":"https://models.example/x","checksum":"sha256:0000000000000000000000000000000000000000000000000000000000000000","destination":"local/"}],"secrets":{"S":"s"}}`
	staged  = `{"version":"s","input_type":"doubles","command":["c"],"stages":[{"name":"a","code":"m:A","workers":2,"cpus":[1,2],"idempotent":true},{"name":"b","after":["a","input"],"batch":{"strategy":"fixed","max_size":4,"delay_micros":10}}]}`
)

func session() []request {
	dry := "?dry_run=true"
	zip := []string{"Content-Type", "application/zip"}
	any := []string{"If-Match", "*"}
	return []request{
		{"uploadArtifact", "/artifacts", "PK", 201, zip},
		{"uploadArtifact", "/artifacts", "PK", 200, zip},
		{"uploadArtifact", "/artifacts", "", 400, zip},
		{"createVersion", "/models/m/versions" + dry, version, 200, nil},
		{"createVersion", "/models/m/versions", version, 201, nil},
		{"createVersion", "/models/m/versions", version, 200, nil},
		{"createVersion", "/models/m/versions", `{"version":"2","bundle":"` + digest + `"}`, 201, nil},
		{"createVersion", "/models/m/versions?keep_current=true", `{"version":"p","input_type":"doubles","image":"i","prepared":true}`, 201, nil},
		{"createVersion", "/models/m/versions", `{"version":"1","input_type":"i","command":["m"]}`, 409, nil},
		{"createVersion", "/models/m/versions?keep_current=true", staged, 201, nil},
		{"listVersions", "/models/m/versions?limit=1", "", 200, nil},
		{"listAllVersions", "/versions?limit=1", "", 200, nil},
		{"getVersion", "/models/m/versions/1", "", 200, nil},
		{"getVersion", "/models/m/versions/2", "", 200, nil},
		{"setScale", "/models/m/versions/2/scale", `{"scale":{"max":3}}`, 200, nil},
		{"setScale", "/models/m/versions/2/scale" + dry, `{"replicas":3}`, 200, nil},
		{"setScale", "/models/m/versions/2/scale", `{}`, 400, nil},
		{"setPin", "/models/m/versions/2/pin", `{"count":2,"until":"2999-01-01T00:00:00Z","reason":"r"}`, 200, nil},
		{"getVersion", "/models/m/versions/2", "", 200, nil},
		{"releasePin", "/models/m/versions/2/pin", "", 200, nil},
		{"getJob", "/models/m/versions/2/job", "", 200, nil},
		{"getVersionTraffic", "/models/m/versions/2/traffic", "", 200, nil},
		{"getVersionStages", "/models/m/versions/s/stages?window=60", "", 200, nil},
		{"getVersionUsage", "/models/m/versions/s/usage", "", 200, nil},
		{"getVersionUsage", "/models/m/versions/none/usage", "", 404, nil},
		{"getVersionStages", "/models/m/versions/s/stages?window=901", "", 400, nil},
		{"createApp", "/apps" + dry, app, 200, nil},
		{"createApp", "/apps", app, 201, nil},
		{"createApp", "/apps", app, 200, nil},
		{"createApp", "/apps", `{"name":"a","input_type":"doubles","latency_slo_micros":2000}`, 409, nil},
		{"createApp", "/apps", `{"name":"a"`, 400, nil},
		{"listApps", "/apps", "", 200, nil},
		{"getApp", "/apps/a", "", 200, nil},
		{"getApp", "/apps/none", "", 404, nil},
		{"putApp", "/apps/a", app, 428, nil},
		{"putApp", "/apps/a", app, 412, []string{"If-Match", `"old"`}},
		{"putApp", "/apps/a", strings.Replace(app, "1000", "1500", 1), 200, any},
		{"putApp", "/apps/b", `{"name":"b","input_type":"doubles","latency_slo_micros":1000}`, 201, nil},
		{"patchApp", "/apps/b", `{"weight":2}`, 200, nil},
		{"patchApp", "/apps/b" + dry, `{"weight":3}`, 200, nil},
		{"patchApp", "/apps/b", `{"nonsense":3}`, 400, nil},
		{"linkModel", "/apps/b/links/m", "", 200, nil},
		{"unlinkModel", "/apps/b/links/m", "", 200, nil},
		{"getPolicy", "/apps/a/policy", "", 200, nil},
		{"putPolicy", "/apps/a/policy", `{"kind":"vote","agreement":0.5}`, 200, nil},
		{"getInsight", "/apps/a/insight?uid=u&context=c", "", 200, nil},
		{"forgetLearned", "/apps/a/learned", "", 204, nil},
		{"tryApp", "/apps/a/try", `{"input":[1,2]}`, 200, nil},
		{"getAppTraffic", "/apps/a/traffic?window=60", "", 200, nil},
		{"getTraffic", "/traffic", "", 200, nil},
		{"getAppUsage", "/apps/a/usage", "", 200, nil},
		{"listUsage", "/usage", "", 200, nil},
		{"listUsage", "/usage?limit=1&model=m", "", 200, nil},
		{"listModels", "/models", "", 200, nil},
		{"getModel", "/models/m", "", 200, nil},
		{"setCurrent", "/models/m/current", `{"version":"1"}`, 200, nil},
		{"setCurrent", "/models/m/current" + dry, `{"version":"2"}`, 200, nil},
		{"listHistory", "/models/m/history", "", 200, nil},
		{"rollBack", "/models/m/rollback" + dry, ``, 200, nil},
		{"rollBack", "/models/m/rollback", `{}`, 200, nil},
		{"deleteVersion", "/models/m/versions/2", "", 409, nil},
		{"deleteVersion", "/models/m/versions/1" + dry, "", 200, nil},
		{"deleteVersion", "/models/m/versions/1", "", 204, nil},
		{"listReplicas", "/replicas?model=m", "", 200, nil},
		{"getReplica", "/replicas/r1", "", 200, nil},
		{"getReplica", "/replicas/none", "", 404, nil},
		{"restartReplica", "/replicas/r1/restart", "", 202, nil},
		{"setCount", "/cluster/roles/gateway/count", `{"count":3,"reason":"r"}`, 202, nil},
		{"drainReplica", "/replicas/r1/drain", "", 202, nil},
		{"readLogs", "/replicas/r1/logs?lines=5", "", 200, nil},
		{"readLogs", "/replicas/r0/logs?stage=rank", "", 200, nil},
		{"listDecisions", "/decisions?model=m&version=1&limit=5", "", 200, nil},
		{"getScheduler", "/scheduler", "", 200, nil},
		{"getCluster", "/cluster", "", 200, nil},
		{"followEvents", "/events", "", 200, nil},
		{"exportCatalog", "/catalog", "", 200, nil},
		{"exportCatalog", "/catalog", "", 200, []string{"Accept", "application/toml"}},
		{"applyCatalog", "/catalog" + dry, `{"apps":[{"name":"c","input_type":"doubles","latency_slo_micros":1000}]}`, 200, nil},
		{"applyCatalog", "/catalog", `{"apps":[{"name":"c","input_type":"doubles","latency_slo_micros":1000}]}`, 200, nil},
		{"listStreams", "/streams", "", 200, nil},
		{"getStream", "/streams/wine", "", 200, nil},
		{"getStream", "/streams/none", "", 404, nil},
		{"suspendStream", "/streams/wine/suspension" + dry, "", 200, nil},
		{"suspendStream", "/streams/wine/suspension", `{"reason":"r"}`, 200, nil},
		{"suspendStream", "/streams/wine/suspension", `{"why":"r"}`, 400, nil},
		{"getStream", "/streams/wine", "", 200, nil},
		{"patchStream", "/streams/wine" + dry, `{"apps":{"red":"c"}}`, 200, nil},
		{"patchStream", "/streams/wine", `{"apps":{"red":"c","rose":null}}`, 200, nil},
		{"patchStream", "/streams/wine", `{"input":["other"]}`, 400, nil},
		{"deleteStream", "/streams/wine", "", 409, nil},
		{"resumeStream", "/streams/wine/suspension" + dry, "", 200, nil},
		{"resumeStream", "/streams/wine/suspension", "", 200, nil},
		{"deleteStream", "/streams/wine" + dry, "", 200, nil},
		{"deleteStream", "/streams/wine", "", 204, nil},
		{"createKey", "/keys" + dry, `{"name":"k","role":"viewer"}`, 200, nil},
		{"createKey", "/keys", `{"name":"k","role":"viewer","apps":["a"],"expires":"2999-01-01T00:00:00Z","limit":{"per_second":1}}`, 201, nil},
		{"listKeys", "/keys", "", 200, nil},
		{"getKey", "/keys/KEY", "", 200, nil},
		{"signIn", "/session", `{"key":"SECRET"}`, 200, nil},
		{"signIn", "/session", `{"key":"wrong"}`, 401, nil},
		{"signOut", "/session", "", 204, nil},
		{"revokeKey", "/keys/KEY" + dry, "", 200, nil},
		{"revokeKey", "/keys/KEY", "", 204, nil},
		{"getMe", "/me", "", 200, nil},
		{"getOpenAPI", "/openapi.yaml", "", 200, nil},
		{"listArtifacts", "/artifacts", "", 200, nil},
		{"getArtifact", "/artifacts/" + digest, "", 200, nil},
		{"downloadArtifact", "/artifacts/" + digest + "/content", "", 200, nil},
		{"deleteArtifact", "/artifacts/" + digest, "", 409, nil},
		{"deleteApp", "/apps/a" + dry, "", 200, nil},
		{"deleteApp", "/apps/a", "", 204, nil},
		{"deleteModel", "/models/m" + dry, "", 200, nil},
		{"deleteModel", "/models/m", "", 204, nil},
		{"deleteArtifact", "/artifacts/" + digest, "", 204, nil},
		{"backUp", "/backup", "", 200, nil},
		{"backUp", "/backup?without_bundles=no", "", 400, nil},
		{"restoreBackup", "/restore?dry_run=true", "BACKUP", 200, []string{"Content-Type", "application/x-tar"}},
		{"restoreBackup", "/restore", "BACKUP", 200, []string{"Content-Type", "application/x-tar"}},
		{"restoreBackup", "/restore", "none", 400, []string{"Content-Type", "application/x-tar"}},
		{"listAudit", "/audit?limit=1000", "", 200, nil},
		{"listAudit", "/audit?kind=key", "", 200, nil},
		{"listAudit", "/audit?kind=none", "", 400, nil},
	}
}

// TestAnswersAreThoseOfTheContract goes through a whole session, every operation of the
// contract at least once with success.
func TestAnswersAreThoseOfTheContract(t *testing.T) {
	handler := served(t)
	contract := load(t, handler)
	made := strings.NewReplacer()
	for _, r := range session() {
		op, ok := contract[r.operation]
		if !ok {
			t.Fatalf("the contract has no %s", r.operation)
		}
		answer := ask(t, handler, op.Method, made.Replace(r.path), made.Replace(r.body), r.headers...)
		if answer.Code != r.status {
			t.Errorf("%s %s: got %d %s, want %d", op.Method, r.path, answer.Code, answer.Body, r.status)
			continue
		}
		conforms(t, op, answer)
		if answer.Code < 300 && !slices.Contains(r.headers, "Content-Type") {
			op.CheckRequest(t, made.Replace(r.body), true)
		}
		if r.operation == "createKey" && answer.Code == http.StatusCreated {
			var key struct{ ID, Secret string }
			require.NoError(t, json.Unmarshal(answer.Body.Bytes(), &key))
			made = strings.NewReplacer("KEY", key.ID, "SECRET", key.Secret)
		}
		if r.operation == "backUp" && answer.Code == http.StatusOK {
			made = strings.NewReplacer("BACKUP", answer.Body.String())
		}
	}
	contract.AllSucceeded(t)
}

// load reads the contract as it is served.
func load(t *testing.T, handler http.Handler) openapi.Contract {
	t.Helper()
	return openapi.Load(t, ask(t, handler, "GET", "/openapi.yaml", "").Body.Bytes())
}

func ask(t *testing.T, handler http.Handler, method, path, body string, headers ...string) *httptest.ResponseRecorder {
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if path == "/events" { // which goes on until the client leaves
		ctx, cancel = context.WithTimeout(ctx, 200*time.Millisecond)
		defer cancel()
	}
	var reader io.Reader
	if body != "" {
		reader = strings.NewReader(body)
	}
	r := httptest.NewRequestWithContext(ctx, method, "http://localhost/api/v1"+path, reader)
	if body != "" {
		r.Header.Set("Content-Type", "application/json")
	}
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	w := httptest.NewRecorder()
	handler.ServeHTTP(w, r)
	return w
}

// conforms holds an answer against what the contract says of its status.
func conforms(t *testing.T, op *openapi.Operation, answer *httptest.ResponseRecorder) {
	t.Helper()
	op.CheckAnswer(t, answer.Code, answer.Header(), answer.Body.Bytes())
	response := op.Responses.Status(answer.Code)
	if response != nil && response.Value.Headers["ETag"] != nil && answer.Header().Get("ETag") == "" && !strings.Contains(answer.Body.String(), `"dry_run":true`) {
		t.Errorf("%s: %d has no ETag", op.OperationID, answer.Code)
	}
}

// A validator that takes anything would find nothing.
func TestWrongAnswersAreFound(t *testing.T) {
	for id, op := range load(t, served(t)) {
		ok := op.Responses.Status(http.StatusOK)
		if ok == nil || ok.Value.Content["application/json"] == nil {
			continue
		}
		for _, wrong := range []any{map[string]any{}, "text", nil, map[string]any{"items": []any{map[string]any{"name": 5}}, "revision": "x", "applied": 1}} {
			if id == "getPolicy" && wrong != nil && wrong != "text" || id == "exportCatalog" && wrong != nil {
				continue // no member is required there
			}
			if ok.Value.Content["application/json"].Schema.Value.VisitJSON(wrong, openapi3.VisitAsResponse()) == nil {
				t.Errorf("%s: %v passes", id, wrong)
			}
		}
	}
}
