package oipservice

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strconv"
	"sync/atomic"
	"testing"

	"github.com/topsail-serving/topsail/containers/gocontainer"
	"github.com/topsail-serving/topsail/serving"
	"github.com/topsail-serving/topsail/test/require"
)

// server is a server of the protocol whose model answers with what it was given.
type server struct {
	*httptest.Server
	metadata string // of the model; empty: there is none
	binary   bool
	ready    atomic.Int32 // its status; 0: 200
	infer    http.HandlerFunc

	path, key string
	request   sent
	raw       []byte // what followed the JSON
}

// sent is the JSON of a request.
type sent struct {
	Inputs []struct {
		Name, Datatype string
		Shape          []int
		Parameters     struct {
			Size *int `json:"binary_data_size"`
		}
		Data json.RawMessage
	}
	Outputs    []struct{ Name string }
	Parameters map[string]any
}

func newServer(t *testing.T) *server {
	s := &server{}
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		s.key = q.Header.Get("Authorization")
		switch {
		case q.URL.Path == "/v2" && s.binary:
			io.WriteString(w, `{"name": "s", "extensions": ["binary_tensor_data"]}`)
		case q.Method == http.MethodPost:
			s.path = q.URL.Path
			body, _ := io.ReadAll(q.Body)
			head := len(body)
			if n := q.Header.Get(headerLength); n != "" {
				head, _ = strconv.Atoi(n)
			}
			s.request, s.raw = sent{}, body[head:]
			if err := json.Unmarshal(body[:head], &s.request); err != nil {
				t.Errorf("%v of %s", err, body[:head])
			}
			s.infer(w, q)
		case q.URL.Path == "/v2/models/m" && s.metadata != "":
			io.WriteString(w, s.metadata)
		case q.URL.Path == "/v2/models/m/ready" && s.ready.Load() == 0:
		default:
			w.WriteHeader(max(int(s.ready.Load()), http.StatusNotFound))
		}
	}))
	t.Cleanup(s.Close)
	return s
}

// answers has the server answer with JSON, and raw tensors behind it.
func (s *server) answers(text string, raw ...byte) {
	s.infer = func(w http.ResponseWriter, _ *http.Request) {
		if len(raw) > 0 {
			w.Header().Set(headerLength, strconv.Itoa(len(text)))
		}
		w.Write(append([]byte(text), raw...))
	}
}

// open is the service of a server, which has said what it takes.
func (s *server) open(t *testing.T, of contract) (*service, error) {
	t.Helper()
	service, err := newService(Config{URL: s.URL, Path: "/v2/models/m", ReadyPath: "/v2/models/m/ready", APIKey: "k", Log: slog.New(slog.DiscardHandler)}, of)
	require.NoError(t, err)
	t.Cleanup(service.server.Close)
	return service, service.learn(t.Context())
}

// ask asks for one query.
func (s *service) asks(ctx context.Context, values ...serving.Value) gocontainer.Result {
	return s.predict(ctx, &gocontainer.Query{Inputs: values, Left: -1}, nil)
}

// text is a value as a test writes it.
func text(v serving.Value) string {
	if v.DType.Size() == 0 && len(v.Shape) == 0 {
		return fmt.Sprintf("%s %v %q", v.Name, v.DType, v.Data)
	}
	if v.DType == serving.Blob {
		return fmt.Sprintf("%s %v%v %x", v.Name, v.DType, v.Shape, v.Data)
	}
	b, err := serving.AppendJSON(nil, v)
	return fmt.Sprintf("%s %v%v %s%s", v.Name, v.DType, v.Shape, bytes.TrimSpace(b), map[bool]string{true: fmt.Sprint(" ", err)}[err != nil])
}

// vectorOf is a vector of an app without a signature.
func vectorOf(t serving.InputType, data []byte) serving.Value {
	return serving.Input{Type: t, Data: data}.Value()
}
