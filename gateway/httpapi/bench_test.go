package httpapi

import (
	"context"
	"io"
	"log/slog"
	"net"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/valyala/fasthttp"

	"github.com/topsail-serving/topsail/internal/access"
	"github.com/topsail-serving/topsail/internal/connlimit"
	"github.com/topsail-serving/topsail/serving"
	"github.com/topsail-serving/topsail/test/require"
)

// BenchmarkServe is the cost of a whole request without the network: parsing,
// routing, decoding, encoding and writing, with a core that knows the answer.
func BenchmarkServe(b *testing.B) {
	row := `{"uid":0,"input":[0.44,1.2,-3.5,0.001,12,7.25,0.5,0.8444218515250481,3,2,1,0.1,9]}`
	image := `{"input":[` + strings.Repeat("0.003921568627451,", 783) + `1]}`
	core := newFake()
	keys := newKeys(b)
	many, secret := stored(b, core, serving.MaxKeys)
	for _, bench := range []struct {
		name, method, path, body, key string
		keys                          *access.Keys
		catalog                       *serving.Catalog
		header                        string
	}{
		{"13doubles", "POST", "/doubles/predict", row, goodKey, nil, nil, ""},
		{"13doubles-keyed", "POST", "/doubles/predict", row, goodKey, keys, nil, ""},
		{"13doubles-stored-key-with-limit", "POST", "/doubles/predict", row, secret, keys, many, ""},
		{"13doubles-timed", "POST", "/doubles/predict", row, goodKey, nil, nil, "X-Topsail-Timing: 1"},
		{"784floats", "POST", "/floats/predict", image, goodKey, nil, nil, ""},
		{"update", "POST", "/doubles/update", `{"uid":0,"query_id":4194304,"label":1.0}`, goodKey, nil, nil, ""},
		{"refused", "POST", "/doubles/predict", `{"input":["a"]}`, goodKey, nil, nil, ""},
		{"health", "GET", "/health", "", goodKey, nil, nil, ""},
	} {
		b.Run(bench.name, func(b *testing.B) {
			answer := serving.Prediction{QueryID: 1 << 40, Output: []byte("0.8444218515250481")}
			api := New(Config{Keys: bench.keys}, known{core, answer}, nothingLearned{}, slog.New(slog.DiscardHandler))
			if bench.catalog != nil {
				api.Serve(bench.catalog)
			}
			l := api.newListener(nil)
			server := api.server(context.Background(), l)
			header := []string{"User-Agent: bench", "Accept: */*", "Content-Type: application/json", "Authorization: Bearer " + bench.key}
			if bench.header != "" {
				header = append(header, bench.header)
			}
			raw := request(bench.method, bench.path, bench.body, header...)
			c := &conn{Conn: &replay{request: []byte(raw), left: b.N}, lease: api.config.Budget.Lease(), place: new(connlimit.Place)}
			l.track(c, fasthttp.StateNew)
			b.ReportAllocs()
			b.ResetTimer()
			require.NoError(b, server.ServeConn(c))
		})
	}
}

// BenchmarkDocument is the cost of a document of so many apps, as a request for it.
func BenchmarkDocument(b *testing.B) {
	for _, n := range []int{3, 1000, 10_000} {
		b.Run(strconv.Itoa(n), func(b *testing.B) {
			core := newFake()
			core.apps = map[string]*serving.App{}
			for i := range n {
				name := "app-" + strconv.Itoa(i)
				core.apps[name] = &serving.App{
					Name: name, Description: "Which cultivar a wine is of, by its chemistry", InputType: serving.Doubles, SLO: serving.Duration(20 * time.Millisecond),
					Example: "[14.23, 1.71, 2.43, 15.6, 127.0, 2.8, 3.06, 0.28, 2.29, 5.64, 1.04, 3.92, 1065.0]",
				}
			}
			api := New(Config{}, core, nothingLearned{}, slog.New(slog.DiscardHandler))
			api.Serve(&serving.Catalog{Apps: core.apps})
			l := api.newListener(nil)
			server := api.server(context.Background(), l)
			c := &conn{Conn: &replay{request: []byte(request("GET", "/openapi.json", "")), left: b.N}, lease: api.config.Budget.Lease(), place: new(connlimit.Place)}
			l.track(c, fasthttp.StateNew)
			b.ReportAllocs()
			b.ResetTimer()
			require.NoError(b, server.ServeConn(c))
		})
	}
}

// known answers every query at once.
type known struct {
	*fakeCore
	answer serving.Prediction
}

func (k known) Predict(context.Context, ...serving.Query) ([]serving.Prediction, error) {
	return []serving.Prediction{k.answer}, nil
}

// nothingLearned takes all feedback at once.
type nothingLearned struct{}

func (nothingLearned) Feedback(_ context.Context, list []serving.Feedback) ([]serving.Learned, error) {
	return make([]serving.Learned, len(list)), nil
}

// replay is a connection that carries the same request again and again.
type replay struct {
	nowhere
	request []byte
	left    int
}

func (r *replay) Read(b []byte) (int, error) {
	if r.left == 0 {
		return 0, io.EOF
	}
	r.left--
	return copy(b, r.request), nil
}

// nowhere swallows what is written to it.
type nowhere struct{ net.Conn }

func (nowhere) Write(b []byte) (int, error)      { return len(b), nil }
func (nowhere) Close() error                     { return nil }
func (nowhere) LocalAddr() net.Addr              { return &net.TCPAddr{} }
func (nowhere) RemoteAddr() net.Addr             { return &net.TCPAddr{} }
func (nowhere) SetDeadline(time.Time) error      { return nil }
func (nowhere) SetReadDeadline(time.Time) error  { return nil }
func (nowhere) SetWriteDeadline(time.Time) error { return nil }
