package httpapi

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/topsail-serving/topsail/serving"
)

// The paths and bodies of the Open Inference Protocol, as its clients send them.
func TestInference(t *testing.T) {
	r := start(t, Config{MaxBatch: 4}, newFake())
	const one = `{"inputs":[{"name":"input","shape":[1,2],"datatype":"FP64","data":[1,2]}]}`
	for _, tt := range []struct {
		method, path, body string
		status             int
		want               string
	}{
		{"GET", "/v2", "", 200, `{"extensions":["binary_tensor_data","model_repository","model_configuration","statistics"],"name":"topsail","version":"2"}`},
		{"GET", "/v2/health/live", "", 200, `{"live":true}`},
		{"GET", "/v2/health/ready", "", 200, `{"live":true,"ready":true}`},
		{"GET", "/v2/models/doubles/ready", "", 200, `{"live":true,"ready":true}`},
		{"GET", "/v2/models/doubles/versions/cold/ready", "", 503, `{"live":false,"ready":false}`},
		{"GET", "/v2/models/gone/ready", "", 404, `no app of this name`},
		{"GET", "/v2/models/doubles", "", 200, `{"name":"doubles","versions":[],"platform":"topsail","inputs":[{"name":"input","datatype":"FP64","shape":[-1,-1]}],"outputs":[{"name":"output","datatype":"FP64","shape":[-1]}]}`},
		{"GET", "/v2/models/strings", "", 200, `"inputs":[{"name":"input","datatype":"BYTES","shape":[-1,1]}]`},
		{"GET", "/v2/models/doubles/versions/1", "", 404, `{"error":"model \"doubles\" has no version \"1\""}`},
		{"GET", "/v2/models/strings/config", "", 200, `{"name":"strings","platform":"topsail","max_batch_size":4,"input":[{"name":"input","data_type":"TYPE_STRING","dims":[1]}],"output":[{"name":"output","data_type":"TYPE_FP64","dims":[]}]}`},
		{"POST", "/v2/repository/index", "", 200, `[]`},
		{"POST", "/v2/repository/models/doubles/load", "", 200, ``},
		{"POST", "/v2/repository/models/gone/load", "", 404, `no app of this name`},
		{"POST", "/v2/repository/models/doubles/unload", "{}", 200, ``},
		{"GET", "/v2/models/doubles/stats", "", 200, `{"model_stats":[{"name":"doubles","version":"0","last_inference":0,"inference_count":3,"execution_count":2,"inference_stats":{"success":{"count":3,"ns":6000000},"fail":{"count":1,"ns":2000000},"queue":{"count":4,"ns":0},`},
		{"GET", "/v2/models/doubles/versions/1/stats", "", 404, `has no version`},
		{"GET", "/v2/models/doubles/versions/1/config", "", 404, `has no version`},
		{"GET", "/v2/models/stats", "", 200, `{"model_stats":[]}`},
		{"POST", "/v2/repository/index", `{"ready":true}`, 200, `[]`},
		{"POST", "/v2/repository/index", `{`, 400, `{"error":"the body must be an object`},
		{"POST", "/v2/models/doubles/infer", one, 200, `{"model_name":"doubles","parameters":{"query_id":1},"outputs":[{"name":"output","datatype":"FP64","shape":[1],"data":[2.0]}]}`},
		{"POST", "/v2/models/doubles/versions/7/infer", `{"id":"a","inputs":[{"name":"input","shape":[3,1],"datatype":"FP64","data":[[1],[2],[3]]}]}`, 200, `{"model_name":"doubles","id":"a","parameters":{"query_ids":"1,1,1"},"outputs":[{"name":"output","datatype":"FP64","shape":[3],"data":[1.0,1.0,1.0]}]}`},
		{"POST", "/v2/models/strings/infer", `{"inputs":[{"name":"input","shape":[2,1],"datatype":"BYTES","data":["ab","c"]}]}`, 200, `"data":[2.0,1.0]`},
		{"POST", "/v2/models/doubles/infer", `{"inputs":[{"name":"input","shape":[5,1],"datatype":"FP64","data":[1,2,3,4,5]}]}`, 400, `{"error":"the batch has 5 rows, and may have 4: send several requests"}`},
		{"POST", "/v2/models/doubles/infer", `{"inputs":[{"name":"input","shape":[1,2],"datatype":"FP32","data":[1,2]}]}`, 400, `{"error":"input \"input\" is FP32[1,2], and FP64[-1,-1] is wanted"}`},
		{"POST", "/v2/models/doubles/infer", `{"inputs":[`, 400, `{"error":"the body is not JSON`},
		{"POST", "/v2/models/doubles/infer", `{"outputs":[{"name":"x"}],` + one[1:], 400, `{"error":"output \"x\" is unknown: the model has \"output\""}`},
		{"POST", "/v2/models/gone/infer", one, 404, `{"error":"no app of this name`},
	} {
		got := r.do(t, tt.method, tt.path, tt.body)
		if got.status != tt.status || !strings.Contains(got.body, tt.want) || got.body != "" && !json.Valid([]byte(got.body)) {
			t.Errorf("%s %s %s:\n got %d %s\nwant %d %s", tt.method, tt.path, tt.body, got.status, got.body, tt.status, tt.want)
		}
	}
	seen := r.core.queries()
	if q := seen[1]; q.Version != "7" || q.App != "doubles" || q.Received.IsZero() {
		t.Errorf("the second query is %+v", q)
	}
}

func TestBinaryTensors(t *testing.T) {
	r := start(t, Config{}, newFake())
	text := `{"parameters":{"binary_data_output":true,"timeout":3000000,"uid":"ann","priority":2},"inputs":[{"name":"input","shape":[1,1],"datatype":"FP64","parameters":{"binary_data_size":8}}]}`
	body := text + "\x00\x00\x00\x00\x00\x00\xf0\x3f"
	got := r.do(t, "POST", "/v2/models/doubles/infer", body, inferenceHeader+": "+strconv.Itoa(len(text)), "X-Timeout-Ms: 5000", "X-Priority: 1")
	want := `{"model_name":"doubles","parameters":{"query_id":1},"outputs":[{"name":"output","datatype":"FP64","shape":[1],"parameters":{"binary_data_size":8}}]}`
	if got.status != 200 || got.body != want+"\x00\x00\x00\x00\x00\x00\xf0\x3f" || got.header.Get(inferenceHeader) != strconv.Itoa(len(want)) {
		t.Errorf("%d %q %v", got.status, got.body, got.header)
	}
	if q := r.core.queries()[0]; q.User != "ann" || q.Timeout != 3*time.Second || q.Priority != 2 {
		t.Errorf("the query is %+v", q)
	}
	if got := r.do(t, "POST", "/v2/models/doubles/infer", "\x00\x00\x00\x00\x00\x00\xf0\x3f", inferenceHeader+": 0"); got.status != 200 || !strings.HasSuffix(got.body, "}\x00\x00\x00\x00\x00\x00\xf0\x3f") {
		t.Errorf("a body of an input alone: %d %q", got.status, got.body)
	}
	for _, header := range []string{"-1", "x", strconv.Itoa(len(body) + 1), strconv.Itoa(len(text) - 1)} {
		if got := r.do(t, "POST", "/v2/models/doubles/infer", body, inferenceHeader+": "+header); got.status != 400 || !strings.HasPrefix(got.body, `{"error":`) {
			t.Errorf("%s: %d %s", header, got.status, got.body)
		}
	}
}

// A default that fits stands in the output; for one that does not, the status says what kind it is.
// The input of a large binary body is what came, and stays that when others come on the same connection.
func TestLargeBinaryTensorsAreKept(t *testing.T) {
	r := start(t, Config{}, newFake())
	c := r.dial(t)
	defer c.Close()
	const n = 100_000
	for i := range 4 {
		text := fmt.Sprintf(`{"inputs":[{"name":"input","shape":[1,%d],"datatype":"FP64","parameters":{"binary_data_size":%d}}]}`, n, 8*n)
		body := text + strings.Repeat(string(rune('a'+i)), 8*n)
		if i == 3 { // in JSON
			text, body = "", `{"inputs":[{"name":"input","shape":[1,`+strconv.Itoa(n)+`],"datatype":"FP64","data":[`+strings.Repeat("1,", n-1)+`1]}]}`
		}
		headers := []string{}
		if text != "" {
			headers = append(headers, inferenceHeader+": "+strconv.Itoa(len(text)))
		}
		if got := c.do(t, "POST", "/v2/models/doubles/infer", body, headers...); got.status != 200 {
			t.Fatalf("%d %s", got.status, got.body)
		}
	}
	for i, q := range r.core.queries() {
		want := strings.Repeat(string(rune('a'+i)), 8*n)
		if i == 3 {
			want = strings.Repeat("\x00\x00\x00\x00\x00\x00\xf0\x3f", n)
		}
		if string(q.Input.Data) != want {
			t.Errorf("the input of query %d is not what came", i)
		}
	}
}

func TestDefaultsInTheProtocol(t *testing.T) {
	core := newFake()
	for _, app := range core.apps {
		app.OutputType = serving.OutputNumber
	}
	core.answer = func(context.Context, *serving.Query) (serving.Prediction, error) {
		return serving.Prediction{QueryID: 7, Output: []byte("-1"), Default: true, Explanation: "it is so"}, nil
	}
	r := start(t, Config{}, core)
	const one = `{"inputs":[{"name":"input","shape":[1,1],"datatype":"FP64","data":[1]}]}`
	if got := r.do(t, "POST", "/v2/models/doubles/infer", one); got.status != 200 || got.body != `{"model_name":"doubles","parameters":{"query_id":7,"default":true,"default_explanation":"it is so"},"outputs":[{"name":"output","datatype":"FP64","shape":[1],"data":[-1.0]}]}` {
		t.Errorf("%d %s", got.status, got.body)
	}
	two := strings.Replace(strings.Replace(one, "[1,1]", "[2,1]", 1), "[1]}", "[1,2]}", 1)
	if got := r.do(t, "POST", "/v2/models/doubles/infer", two); !strings.Contains(got.body, `"parameters":{"query_ids":"7,7","default":true,"default_rows":"0,1","default_explanation":"it is so"}`) {
		t.Errorf("%d %s", got.status, got.body)
	}
}

// The index has the apps that the caller may ask, and the versions of those with one model.
func TestRepositoryIndex(t *testing.T) {
	core := newFake()
	version := func(name string) *serving.Version {
		return &serving.Version{ModelID: serving.ModelID{Model: "m", Version: name}}
	}
	core.apps = map[string]*serving.App{
		"both": {Name: "both", InputType: serving.Doubles, Models: []string{"m", "n"}}, "one": {Name: "one", InputType: serving.Doubles, Models: []string{"m"}},
		"locked": {Name: "locked", InputType: serving.Doubles, RequireKey: true},
	}
	core.catalog = &serving.Catalog{Apps: core.apps, Models: map[string]*serving.Model{"m": {Name: "m", Versions: map[string]*serving.Version{"1": version("1"), "cold": version("cold")}}}}
	r := start(t, Config{}, core)
	const ready = `[{"name":"both","state":"READY","reason":""},{"name":"one","version":"1","state":"READY","reason":""}`
	for body, want := range map[string]string{
		``: ready + `,{"name":"one","version":"cold","state":"UNAVAILABLE","reason":"no replica is ready"}]`, `{"ready":true}`: ready + `]`,
	} {
		if got := r.do(t, "POST", "/v2/repository/index", body); got.status != 200 || got.body != want {
			t.Errorf("%s: %d %s", body, got.status, got.body)
		}
	}
	for path, want := range map[string]string{
		"/v2/models/one/versions/cold/ready": `{"live":false,"ready":false}`, "/v2/models/one/versions/1/ready": `{"live":true,"ready":true}`,
		"/v2/models/one/versions/1/stats": `"version":"1"`, "/v2/models/one/versions/1/config": `"name":"one"`,
	} {
		if got := r.do(t, "GET", path, ""); !strings.Contains(got.body, want) {
			t.Errorf("%s: %d %s", path, got.status, got.body)
		}
	}
	if got := r.do(t, "GET", "/v2/models/one", ""); !strings.Contains(got.body, `"versions":["1","cold"]`) {
		t.Error(got.body)
	}
}
