package httpapi

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"testing"

	"github.com/topsail-serving/topsail/serving"
	"github.com/topsail-serving/topsail/test/require"
)

// doors are the requests that ask for a prediction, but for POST /APP/predict without parts, which answers with defaults.
var doors = []struct {
	name, path, body string
	header           []string
	stream           bool
	parts            bool // the query is asked in parts
	texts            bool // a default is an answer if it is a text, instead of a number
	refusal          func(body string) string
}{
	{"infer", "/v2/models/APP/infer", `{"inputs":[{"name":"input","shape":[1,1],"datatype":"FP64","data":[1]}]}`, nil, false, false, false, plainRefusal},
	{"events", "/APP/predict", `{"input":[1]}`, []string{"Accept: text/event-stream"}, true, true, false, ownRefusal},
	{"chat", "/openai/v1/chat/completions", `{"model":"APP","messages":[]}`, nil, false, true, true, openaiRefusal},
	{"chat in parts", "/openai/v1/chat/completions", `{"model":"APP","messages":[],"stream":true}`, nil, true, true, true, openaiRefusal},
	{"completion", "/openai/v1/completions", `{"model":"APP","prompt":"x"}`, nil, false, true, true, openaiRefusal},
	{"completion in parts", "/openai/v1/completions", `{"model":"APP","prompt":"x","stream":true}`, nil, true, true, true, openaiRefusal},
	{"embeddings", "/openai/v1/embeddings", `{"model":"APP","input":"x"}`, nil, false, false, true, openaiRefusal},
}

// The text of a refusal in the forms of the protocols; empty: it has another form.
func plainRefusal(body string) string {
	var e map[string]string
	if json.Unmarshal([]byte(body), &e) != nil || len(e) != 1 {
		return ""
	}
	return e["error"]
}

func ownRefusal(body string) string {
	var e map[string]string
	if json.Unmarshal([]byte(body), &e) != nil || len(e) != 2 || e["error"] == "" {
		return ""
	}
	return e["cause"]
}

func openaiRefusal(body string) string {
	var e struct {
		Error struct{ Message, Type string }
	}
	if json.Unmarshal([]byte(body), &e) != nil || e.Error.Type == "" {
		return ""
	}
	return e.Error.Message
}

// atDoors runs a test of each request at a server of its own. The app is what the request needs, and ends says how its answers
// end, and after how many parts.
func atDoors(t *testing.T, test func(t *testing.T, s *running, app *serving.App, ends func(p serving.Prediction, parts int, err error), ask func() reply, at int)) {
	for at, door := range doors {
		t.Run(door.name, func(t *testing.T) {
			app := &serving.App{Name: "asked", InputType: serving.Chat, OutputType: serving.OutputNumber}
			if !door.texts {
				app.InputType = serving.Doubles
			}
			core, _ := keyed(nil)
			core.apps[app.Name] = app
			s := start(t, Config{}, core)
			ends := func(p serving.Prediction, parts int, err error) {
				core.answer = func(context.Context, *serving.Query) (serving.Prediction, error) { return p, err }
				core.parts = func(*serving.Query) (serving.Parts, error) {
					f := newFakeParts(strings.Split(strings.Repeat("a", parts), "")...)
					close(f.next)
					f.end = p
					return f, err
				}
			}
			ask := func() reply {
				return s.do(t, "POST", strings.ReplaceAll(door.path, "APP", app.Name), strings.ReplaceAll(door.body, "APP", app.Name), door.header...)
			}
			test(t, s, app, ends, ask, at)
		})
	}
}

// Where there is no answer, every protocol says why: no default that fits, one that the app does not want shown, or an answer
// that is cut.
func TestDefaultsOfEveryRequest(t *testing.T) {
	atDoors(t, func(t *testing.T, _ *running, app *serving.App, ends func(serving.Prediction, int, error), ask func() reply, at int) {
		door := doors[at]
		events, embeddings := door.name == "events", door.name == "embeddings"
		fits := "-1"
		if door.texts {
			fits = `"sorry"`
		}
		for cause, status := range map[serving.Cause]int{
			serving.MissedSLO: 504, serving.NoReplica: 503, serving.Draining: 503, serving.RefusedFull: 429, serving.RefusedLate: 429,
			serving.ModelError: 500, serving.ContainerError: 500, serving.Dropped: 500, serving.BadInput: 400,
		} {
			for _, tt := range []struct {
				output        string
				defaultErrors bool
				parts         int
				answered      bool // with the default
			}{
				{fits, false, 0, !embeddings}, {"null", false, 0, events}, {fits, true, 0, events}, {fits, false, 1, false},
			} {
				if tt.parts > 0 && !door.parts {
					continue
				}
				app.DefaultErrors = tt.defaultErrors
				ends(serving.Prediction{QueryID: 7, Output: []byte(tt.output), Default: true, Cause: cause, Explanation: "it is so"}, tt.parts, nil)
				got := ask()
				name := fmt.Sprintf("%v, %+v: %d %s", cause, tt, got.status, got.body)
				switch {
				case tt.answered:
					if got.status != 200 || !strings.Contains(got.body, `"default":true`) || !strings.Contains(got.body, `"default_explanation":"it is so"`) {
						t.Errorf("the default is no answer: %s", name)
					}
				case tt.parts > 0 && events:
					if got.status != 200 || !strings.HasSuffix(got.body, "event: error\ndata: {\"error\":\"Answer cut\",\"cause\":\"it is so\"}\n\n") {
						t.Errorf("it is not cut: %s", name)
					}
				case tt.parts > 0 && door.stream:
					_, last, _ := strings.Cut(got.body, "data: {\"error\"")
					if got.status != 200 || openaiRefusal("{\"error\""+last) != "it is so" || !strings.Contains(last, `"code":"`+cause.String()+`"`) || strings.Contains(last, "[DONE]") {
						t.Errorf("it is not cut: %s", name)
					}
				default:
					kind := "server_error"
					switch status {
					case 400:
						kind = "invalid_request_error"
					case 429:
						kind = "rate_limit_error"
					}
					if got.status != status || door.refusal(got.body) != "it is so" || door.texts && !strings.Contains(got.body, kind) {
						t.Errorf("want %d: %s", status, name)
					}
				}
			}
		}
	})
}

// What is refused, or fails, has one status and one text in every protocol.
func TestErrorsOfEveryRequest(t *testing.T) {
	atDoors(t, func(t *testing.T, _ *running, _ *serving.App, ends func(serving.Prediction, int, error), ask func() reply, at int) {
		for _, tt := range []struct {
			err    error
			status int
			want   string
		}{
			{&serving.QueryError{Cause: "it is wrong"}, 400, "it is wrong"},
			{&serving.QueryError{Cause: "no such version", UnknownVersion: true}, 404, "no such version"},
			{serving.ErrUnknownApp, 404, "no app of this name is registered"},
			{serving.ErrNoCatalog, 503, "has not loaded the apps yet"},
			{errNoMemory, 503, "max_inflight_bytes"},
			{errors.New("a secret"), 500, "its log says why"},
		} {
			if doors[at].name == "events" && tt.status == 404 && tt.want == "no such version" {
				tt.status = 400 // as POST /APP/predict answers
			}
			ends(serving.Prediction{}, 0, fmt.Errorf("asking: %w", tt.err))
			if got := ask(); got.status != tt.status || !strings.Contains(doors[at].refusal(got.body), tt.want) || strings.Contains(got.body, "secret") {
				t.Errorf("want %d with %q: %d %s", tt.status, tt.want, got.status, got.body)
			}
		}
	})
}

func TestLimitsOfEveryRequest(t *testing.T) {
	atDoors(t, func(t *testing.T, s *running, app *serving.App, ends func(serving.Prediction, int, error), ask func() reply, at int) {
		app.Limit = &serving.Limit{PerSecond: 0.001, Burst: 1}
		s.server.Serve(s.core.catalog)
		out, err := serving.NewOutput(serving.Number(1))
		require.NoError(t, err)
		ends(serving.Prediction{QueryID: 7, Output: out.JSON, Full: out}, 0, nil)
		if got := ask(); got.status != 200 {
			t.Fatalf("%d %s", got.status, got.body)
		}
		got := ask()
		seconds, wrong := strconv.Atoi(got.header.Get("Retry-After"))
		millis, wrongToo := strconv.Atoi(got.header.Get(retryAfterMs))
		if got.status != 429 || !strings.Contains(doors[at].refusal(got.body), `app "asked"`) || wrong != nil || wrongToo != nil || seconds <= 0 || millis <= 1000*(seconds-1) {
			t.Errorf("%d %v %s", got.status, got.header, got.body)
		}
	})
}
