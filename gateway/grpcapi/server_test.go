package grpcapi

import (
	"context"
	"encoding/binary"
	"errors"
	"io"
	"log/slog"
	"math"
	"net"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/topsail-serving/topsail/gateway/admission"
	"github.com/topsail-serving/topsail/gateway/grpcapi/proto"
	"github.com/topsail-serving/topsail/internal/obs"
	"github.com/topsail-serving/topsail/serving"
	"github.com/topsail-serving/topsail/test/require"
)

// fakeCore answers every query with the sum of its doubles.
type fakeCore struct {
	catalog *serving.Catalog
	answer  func(ctx context.Context, q *serving.Query) (serving.Prediction, error) // nil: the sum

	parts *fakeParts // of an answer in parts; nil: two numbers

	ends func() (p serving.Prediction, parts int, err error) // how answers of the app "sums" end, and after how many parts; nil: as others

	mu   sync.Mutex
	seen []serving.Query // guarded by mu

	heard []serving.Feedback
}

func (f *fakeCore) App(name string) (*serving.App, error) {
	if app := f.catalog.Apps[name]; app != nil {
		return app, nil
	}
	return nil, serving.ErrUnknownApp
}

func (f *fakeCore) Predict(ctx context.Context, qs ...serving.Query) ([]serving.Prediction, error) {
	ps := make([]serving.Prediction, len(qs))
	for i := range qs {
		f.mu.Lock()
		f.seen = append(f.seen, qs[i])
		f.mu.Unlock()
		if f.ends != nil && qs[i].App == "sums" {
			p, _, err := f.ends()
			if err != nil {
				return nil, err
			}
			ps[i] = p
			continue
		}
		if f.answer != nil {
			p, err := f.answer(ctx, &qs[i])
			if err != nil {
				return nil, err
			}
			ps[i] = p
			continue
		}
		sum := 0.0
		for data := qs[i].Input.Data; len(data) >= 8; data = data[8:] {
			sum += math.Float64frombits(binary.LittleEndian.Uint64(data))
		}
		out, err := serving.NewOutput(serving.Number(sum))
		if err != nil {
			return nil, err
		}
		ps[i] = serving.Prediction{QueryID: int64(i + 1), Output: out.JSON, Full: out}
	}
	return ps, nil
}

// Stream answers with 1.0 and 2.0, or as the test says.
func (f *fakeCore) Stream(q *serving.Query) (serving.Parts, error) {
	if f.ends != nil && q.App == "sums" {
		p, parts, err := f.ends()
		return &fakeParts{parts: make([]float64, parts), end: p}, err
	}
	if f.parts != nil {
		return f.parts, nil
	}
	return &fakeParts{parts: []float64{1, 2}, end: serving.Prediction{QueryID: 7, Output: []byte("2.0")}}, nil
}

// fakeParts is an answer in parts.
type fakeParts struct {
	parts  []float64
	hang   bool          // in place of the end
	waits  chan struct{} // nil, or closed when it hangs
	end    serving.Prediction
	closed chan struct{} // nil, or closed with it
}

func (f *fakeParts) Next(ctx context.Context) (*serving.Output, error) {
	if len(f.parts) == 0 && f.hang {
		if f.waits != nil {
			close(f.waits)
		}
		<-ctx.Done()
		return nil, context.Cause(ctx)
	}
	if len(f.parts) == 0 {
		return nil, io.EOF
	}
	part := f.parts[0]
	f.parts = f.parts[1:]
	return serving.NewOutput(serving.Number(part))
}

func (f *fakeParts) Answer() *serving.Prediction { return &f.end }

func (f *fakeParts) Close() {
	if f.closed != nil {
		close(f.closed)
	}
}

func (f *fakeCore) Ready(app, version string) (bool, error) {
	_, err := f.App(app)
	return err == nil && version != "cold", err
}

func (f *fakeCore) Wake(app, _ string) error {
	_, err := f.App(app)
	return err
}

func (f *fakeCore) Inferences(string) serving.Inferences {
	return serving.Inferences{Succeeded: 3, Defaults: 1, Cached: 2, Asked: 2, Took: 8 * time.Millisecond}
}

func (f *fakeCore) Feedback(_ context.Context, list []serving.Feedback) ([]serving.Learned, error) {
	f.heard = append(f.heard, list...)
	return []serving.Learned{{QueryID: list[0].QueryID, Joined: serving.FromRecord, Loss: 0.5}}, nil
}

func (f *fakeCore) queries() []serving.Query {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.seen)
}

func newFake() *fakeCore {
	return &fakeCore{catalog: &serving.Catalog{Apps: map[string]*serving.App{
		"sums":   {Name: "sums", InputType: serving.Doubles},
		"texts":  {Name: "texts", InputType: serving.Strings},
		"closed": {Name: "closed", InputType: serving.Doubles, RequireKey: true},
		"slow":   {Name: "slow", InputType: serving.Doubles, Limit: &serving.Limit{PerSecond: 0.001, Burst: 1}},
	}}}
}

type client struct {
	proto.GRPCInferenceServiceClient
	conn *grpc.ClientConn
	stop func() // the server
}

// start runs a server until the test ends.
func start(t *testing.T, config Config, core *fakeCore, keys admission.Config) client {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	return startOn(t, ln, config, core, keys, grpc.WithTransportCredentials(insecure.NewCredentials()))
}

// alive is how many calls are being received that have not ended.
func (r *receiving) alive() (n int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for e := r.calls.Front(); e != nil; e = e.Next() {
		if e.Value.(*arrival).Err() == nil {
			n++
		}
	}
	return n
}

// startOn is start at a listener, with a client that dials it as the options say.
func startOn(t *testing.T, ln net.Listener, config Config, core *fakeCore, keys admission.Config, options ...grpc.DialOption) client {
	t.Helper()
	keys.Metrics = obs.NewRegistry()
	control := admission.New(keys)
	control.Serve(core.catalog)
	server := New(config, core, core, control, slog.New(slog.DiscardHandler))
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- server.Run(ctx, ln) }()
	conn, err := grpc.NewClient("passthrough:"+ln.Addr().String(), options...)
	require.NoError(t, err)
	t.Cleanup(func() {
		conn.Close()
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
		for i := 0; server.receiving.alive() != 0 && i < 1e6; i++ { // until those that are cut off have ended
			runtime.Gosched()
		}
		if n := server.receiving.alive(); n != 0 {
			t.Errorf("%d calls are being received at the end", n)
		}
		if used := server.config.Budget.Used(); used != 0 {
			t.Errorf("%d bytes of the budget are held at the end", used)
		}
	})
	return client{proto.NewGRPCInferenceServiceClient(conn), conn, cancel}
}

func doubles(xs ...float64) (data []byte) {
	for _, x := range xs {
		data = binary.LittleEndian.AppendUint64(data, math.Float64bits(x))
	}
	return data
}

// vector is a request for the sums of rows of two.
func vector(model string, xs ...float64) *proto.ModelInferRequest {
	return &proto.ModelInferRequest{
		ModelName: model, Id: "7",
		Inputs:           []*proto.ModelInferRequest_InferInputTensor{{Name: "input", Datatype: "FP64", Shape: []int64{int64(len(xs) / 2), 2}}},
		RawInputContents: [][]byte{doubles(xs...)},
	}
}

func TestInfer(t *testing.T) {
	core := newFake()
	c := start(t, Config{}, core, admission.Config{})
	raw, err := c.ModelInfer(t.Context(), vector("sums", 1, 2, 3, 4))
	if err != nil || raw.ModelName != "sums" || raw.Id != "7" || len(raw.Outputs) != 1 || raw.Outputs[0].Datatype != "FP64" ||
		!slices.Equal(raw.Outputs[0].Shape, []int64{2}) || string(raw.RawOutputContents[0]) != string(doubles(3, 7)) ||
		raw.Parameters["query_ids"].GetStringParam() != "1,2" {
		t.Errorf("raw: %v, %v", raw, err)
	}
	typed, err := c.ModelInfer(t.Context(), &proto.ModelInferRequest{
		ModelName:  "sums",
		Parameters: map[string]*proto.InferParameter{"timeout": parameter(int64(5000)), "uid": parameter("u"), "other": parameter(true), "priority": parameter(int64(1))},
		Inputs: []*proto.ModelInferRequest_InferInputTensor{{
			Name: "input", Datatype: "FP64", Shape: []int64{1, 2}, Contents: &proto.InferTensorContents{Fp64Contents: []float64{1, 2}},
		}},
	})
	if err != nil || len(typed.RawOutputContents) != 0 || !slices.Equal(typed.Outputs[0].Contents.GetFp64Contents(), []float64{3}) || typed.Parameters["query_id"].GetInt64Param() != 1 {
		t.Errorf("typed: %v, %v", typed, err)
	}
	seen := core.queries()
	if last := seen[len(seen)-1]; last.Timeout != 5*time.Millisecond || last.User != "u" || last.Priority != 1 {
		t.Errorf("%+v", last)
	}
}

// What a caller says of priority, in the metadata or in the request, only lowers it.
func TestPriorityOfACall(t *testing.T) {
	core := newFake()
	c := start(t, Config{}, core, admission.Config{})
	query := proto.NewTopsailClient(c.conn)
	for _, tt := range []struct {
		metadata string
		said     int64
		want     int
	}{{"", 0, 0}, {"2", 0, 2}, {"1", 3, 3}, {"3", 1, 3}, {"", 2, 2}} {
		ctx := t.Context()
		if tt.metadata != "" {
			ctx = metadata.AppendToOutgoingContext(ctx, priorityKey, tt.metadata)
		}
		m := vector("sums", 1, 2)
		m.Parameters = map[string]*proto.InferParameter{"priority": parameter(tt.said)}
		_, inferred := c.ModelInfer(ctx, m)
		_, predicted := query.Predict(ctx, &proto.PredictRequest{App: "sums", Inputs: vectorTensor(1, 2), Priority: uint32(tt.said)})
		seen := core.queries()
		if err := errors.Join(inferred, predicted); err != nil || seen[len(seen)-2].Priority != tt.want || seen[len(seen)-1].Priority != tt.want {
			t.Errorf("%+v: %v, %d and %d", tt, err, seen[len(seen)-2].Priority, seen[len(seen)-1].Priority)
		}
	}
	m := vector("sums", 1, 2)
	m.Parameters = map[string]*proto.InferParameter{"priority": parameter(int64(1 << 40))} // of a client that knows more of them
	if _, err := c.ModelInfer(t.Context(), m); err != nil || core.queries()[len(core.queries())-1].Priority != serving.LowestPriority {
		t.Error(err, core.queries())
	}
	m.Parameters["priority"] = parameter("high")
	_, text := c.ModelInfer(t.Context(), m)
	_, many := query.Predict(t.Context(), &proto.PredictRequest{App: "sums", Inputs: vectorTensor(1, 2), Priority: 4})
	_, wrong := c.ModelInfer(metadata.AppendToOutgoingContext(t.Context(), priorityKey, "-1"), vector("sums", 1, 2))
	for _, err := range []error{text, many, wrong} {
		if status.Code(err) != codes.InvalidArgument || !strings.Contains(err.Error(), "priority") {
			t.Errorf("a priority that is none: %v", err)
		}
	}
}

func TestInferRequestsThatAreRefused(t *testing.T) {
	c := start(t, Config{MaxBatch: 2}, newFake(), admission.Config{})
	change := func(f func(m *proto.ModelInferRequest)) *proto.ModelInferRequest {
		m := vector("sums", 1, 2)
		f(m)
		return m
	}
	for _, tt := range []struct {
		m    *proto.ModelInferRequest
		code codes.Code
		want string
	}{
		{vector("gone", 1, 2), codes.NotFound, "no app of this name"},
		{vector("closed", 1, 2), codes.Unauthenticated, "Authorization: Bearer KEY"},
		{vector("sums", 1, 2, 3, 4, 5, 6), codes.InvalidArgument, "the batch has 3 rows, and may have 2"},
		{&proto.ModelInferRequest{ModelName: "sums"}, codes.InvalidArgument, "the request has none"},
		{change(func(m *proto.ModelInferRequest) { m.RawInputContents[0] = m.RawInputContents[0][1:] }), codes.InvalidArgument, `input "input": it has 15 bytes, and FP64[1,2] needs 16`},
		{change(func(m *proto.ModelInferRequest) { m.RawInputContents = append(m.RawInputContents, nil) }), codes.InvalidArgument, "there are 2, and 1 inputs"},
		{change(func(m *proto.ModelInferRequest) { m.Inputs[0].Contents = &proto.InferTensorContents{} }), codes.InvalidArgument, "give one of them"},
		{change(func(m *proto.ModelInferRequest) { m.RawInputContents = nil }), codes.InvalidArgument, "the contents have 0 elements of FP64, and the shape [1 2] needs 2"},
		{change(func(m *proto.ModelInferRequest) { m.Inputs[0].Datatype = "FLOAT" }), codes.InvalidArgument, "FLOAT"},
		{change(func(m *proto.ModelInferRequest) { m.Inputs[0].Shape = []int64{1 << 31, 1 << 31} }), codes.InvalidArgument, "dimension 2147483648"},
		{change(func(m *proto.ModelInferRequest) { m.Inputs[0].Shape = []int64{1 << 30, 1 << 30} }), codes.InvalidArgument, "more than 2^31 elements"},
		{change(func(m *proto.ModelInferRequest) { m.Inputs[0].Shape = []int64{-1, 2} }), codes.InvalidArgument, "dimension -1"},
		{change(func(m *proto.ModelInferRequest) {
			m.Inputs = append(m.Inputs, &proto.ModelInferRequest_InferInputTensor{Name: "x", Datatype: "FP64", Shape: []int64{1, 2}})
			m.RawInputContents = append(m.RawInputContents, doubles(1, 2))
		}), codes.InvalidArgument, `the model has "input"`},
		{change(func(m *proto.ModelInferRequest) { m.Inputs[0].Datatype = "BYTES" }), codes.InvalidArgument, "it ends before"},
		{change(func(m *proto.ModelInferRequest) {
			m.Outputs = []*proto.ModelInferRequest_InferRequestedOutputTensor{{Name: "y"}}
		}), codes.InvalidArgument, `output "y" is unknown`},
		{change(func(m *proto.ModelInferRequest) { m.Inputs = slices.Repeat(m.Inputs, 10_000) }), codes.InvalidArgument, "a request has at most"},
		{change(func(m *proto.ModelInferRequest) {
			m.Parameters = map[string]*proto.InferParameter{"timeout": parameter("soon")}
		}), codes.InvalidArgument, "timeout"},
		{change(func(m *proto.ModelInferRequest) {
			m.RawInputContents, m.Inputs[0].Datatype, m.Inputs[0].Contents = nil, "INT8", &proto.InferTensorContents{IntContents: []int32{1, 128}}
		}), codes.InvalidArgument, "128 is no INT8"},
	} {
		_, err := c.ModelInfer(t.Context(), tt.m)
		if status.Code(err) != tt.code || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("got %v, want %v with %q", err, tt.code, tt.want)
		}
	}
	if _, err := c.ModelInfer(t.Context(), vector("slow", 1, 2)); err != nil {
		t.Error(err)
	}
	_, err := c.ModelInfer(t.Context(), vector("slow", 1, 2))
	if status.Code(err) != codes.ResourceExhausted || len(status.Convert(err).Details()) != 1 {
		t.Errorf("the limit: %v", err)
	}
}

// A default that fits is an output with a parameter that says so.
func TestDefaults(t *testing.T) {
	core := newFake()
	core.answer = func(context.Context, *serving.Query) (serving.Prediction, error) {
		return serving.Prediction{QueryID: 9, Output: []byte("-1"), Default: true, Cause: serving.MissedSLO, Explanation: "it is so"}, nil
	}
	got, err := start(t, Config{}, core, admission.Config{}).ModelInfer(t.Context(), vector("sums", 1, 2))
	if err != nil || string(got.RawOutputContents[0]) != string(doubles(-1)) || !got.Parameters["default"].GetBoolParam() || got.Parameters["default_explanation"].GetStringParam() != "it is so" {
		t.Errorf("%v, %v", got, err)
	}
}

// The deadline of a call shortens the objective, and a caller that goes away cancels its query.
func TestDeadlinesAndCancels(t *testing.T) {
	for name, ask := range map[string]func(ctx context.Context, c client) error{
		"ModelInfer": func(ctx context.Context, c client) error {
			_, err := c.ModelInfer(ctx, vector("sums", 1, 2))
			return err
		},
		"ModelStreamInfer": func(ctx context.Context, c client) error {
			stream, err := c.ModelStreamInfer(ctx)
			if err != nil {
				return err
			}
			if err := stream.Send(vector("sums", 1, 2)); err != nil {
				return err
			}
			_, err = stream.Recv()
			return err
		},
		"Predict": func(ctx context.Context, c client) error {
			_, err := proto.NewTopsailClient(c.conn).Predict(ctx, &proto.PredictRequest{App: "sums", Inputs: vectorTensor(1, 2)})
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			core := newFake()
			asked, cancelled := make(chan struct{}, 1), make(chan struct{})
			core.answer = func(ctx context.Context, q *serving.Query) (serving.Prediction, error) {
				if q.Timeout <= 0 || q.Timeout > time.Minute {
					t.Errorf("timeout %v", q.Timeout)
				}
				asked <- struct{}{}
				<-ctx.Done()
				close(cancelled)
				return serving.Prediction{}, ctx.Err()
			}
			c := start(t, Config{}, core, admission.Config{})
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			go func() { <-asked; cancel() }()
			if err := ask(ctx, c); status.Code(err) != codes.Canceled {
				t.Error(err)
			}
			<-cancelled
		})
	}
}

func TestKeys(t *testing.T) {
	core := newFake()
	key, secret := serving.NewKey()
	key.Name, key.Role, key.Apps = "k", serving.RoleQuery, []string{"sums", "closed"}
	core.catalog.Keys = map[string]*serving.Key{key.ID: key}
	c := start(t, Config{}, core, admission.Config{RequireKeys: true})
	with := func(values ...string) context.Context {
		return metadata.AppendToOutgoingContext(t.Context(), values...)
	}
	for _, tt := range []struct {
		ctx   context.Context
		model string
		code  codes.Code
	}{
		{t.Context(), "sums", codes.Unauthenticated}, {with("authorization", "Bearer wrong-wrong-wrong"), "sums", codes.Unauthenticated},
		{with("authorization", "Bearer "+secret), "sums", codes.OK}, {with("x-api-key", secret), "closed", codes.OK},
		{with("x-api-key", secret), "texts", codes.PermissionDenied},
	} {
		if _, err := c.ModelInfer(tt.ctx, vector(tt.model, 1, 2)); status.Code(err) != tt.code {
			t.Errorf("%s: %v, want %v", tt.model, err, tt.code)
		}
	}
	if list, err := c.RepositoryIndex(with("x-api-key", secret), &proto.RepositoryIndexRequest{}); err != nil || len(list.Models) != 2 || list.Models[0].Name != "closed" {
		t.Errorf("%v, %v", list, err)
	}
	if got, err := grpc_health_v1.NewHealthClient(c.conn).Check(t.Context(), &grpc_health_v1.HealthCheckRequest{}); err != nil || got.Status != grpc_health_v1.HealthCheckResponse_SERVING {
		t.Errorf("health needs no key: %v, %v", got, err)
	}
	if got, err := c.ServerReady(t.Context(), &proto.ServerReadyRequest{}); err != nil || !got.Ready {
		t.Errorf("readiness needs no key: %v, %v", got, err)
	}
}

func TestModels(t *testing.T) {
	c := start(t, Config{}, newFake(), admission.Config{})
	ctx := t.Context()
	if got, err := c.ServerReady(ctx, &proto.ServerReadyRequest{}); err != nil || !got.Ready {
		t.Errorf("%v, %v", got, err)
	}
	if got, err := c.ServerMetadata(ctx, &proto.ServerMetadataRequest{}); err != nil || got.Name != "topsail" || !slices.Contains(got.Extensions, "statistics") {
		t.Errorf("%v, %v", got, err)
	}
	if got, err := c.ModelReady(ctx, &proto.ModelReadyRequest{Name: "sums"}); err != nil || !got.Ready {
		t.Errorf("%v, %v", got, err)
	}
	for _, unready := range []*proto.ModelReadyRequest{{Name: "sums", Version: "cold"}, {Name: "nothing"}} {
		if got, err := c.ModelReady(ctx, unready); err != nil || got.Ready {
			t.Errorf("%v is %v, %v", unready, got, err)
		}
	}
	if _, err := c.ModelConfig(ctx, &proto.ModelConfigRequest{Name: "sums", Version: "9"}); status.Code(err) != codes.NotFound {
		t.Error(err)
	}
	if _, err := c.ModelStatistics(ctx, &proto.ModelStatisticsRequest{Name: "sums", Version: "9"}); status.Code(err) != codes.NotFound {
		t.Error(err)
	}
	if got, err := c.ModelMetadata(ctx, &proto.ModelMetadataRequest{Name: "texts"}); err != nil || got.Inputs[0].Datatype != "BYTES" || !slices.Equal(got.Inputs[0].Shape, []int64{-1, 1}) {
		t.Errorf("%v, %v", got, err)
	}
	if _, err := c.ModelMetadata(ctx, &proto.ModelMetadataRequest{Name: "texts", Version: "9"}); status.Code(err) != codes.NotFound {
		t.Error(err)
	}
	if got, err := c.ModelConfig(ctx, &proto.ModelConfigRequest{Name: "sums"}); err != nil || got.Config.MaxBatchSize != 4096 || got.Config.Input[0].DataType != proto.DataType_TYPE_FP64 {
		t.Errorf("%v, %v", got, err)
	}
	if got, err := c.ModelStatistics(ctx, &proto.ModelStatisticsRequest{Name: "sums"}); err != nil || got.ModelStats[0].InferenceStats.Success.Ns != 6_000_000 || got.ModelStats[0].InferenceStats.Queue.Count != 4 || got.ModelStats[0].Version != "0" {
		t.Errorf("%v, %v", got, err)
	}
	if _, err := c.RepositoryModelLoad(ctx, &proto.RepositoryModelLoadRequest{ModelName: "sums"}); err != nil {
		t.Error(err)
	}
	if _, err := c.RepositoryModelUnload(ctx, &proto.RepositoryModelUnloadRequest{ModelName: "gone"}); status.Code(err) != codes.NotFound {
		t.Error(err)
	}
}

// Requests of a stream are answered side by side, and one that is wrong does not end it.
// Whoever asks for the server's health or a service's is told that calls should wait for the first catalog.
func TestHealthBeforeTheFirstCatalog(t *testing.T) {
	var started atomic.Bool
	c := start(t, Config{}, newFake(), admission.Config{Started: started.Load})
	var watched []grpc_health_v1.Health_WatchClient
	for _, service := range []string{"", "inference.GRPCInferenceService", "topsail.v1.Topsail"} {
		watch, err := grpc_health_v1.NewHealthClient(c.conn).Watch(t.Context(), &grpc_health_v1.HealthCheckRequest{Service: service})
		require.NoError(t, err)
		watched = append(watched, watch)
	}
	for _, want := range []grpc_health_v1.HealthCheckResponse_ServingStatus{grpc_health_v1.HealthCheckResponse_NOT_SERVING, grpc_health_v1.HealthCheckResponse_SERVING} {
		for _, watch := range watched {
			if got, err := watch.Recv(); err != nil || got.Status != want {
				t.Errorf("it is %v, %v, want %v", got, err, want)
			}
		}
		started.Store(true)
	}
}

func TestStream(t *testing.T) {
	core := newFake()
	c := start(t, Config{}, core, admission.Config{})
	stream, err := c.ModelStreamInfer(t.Context())
	require.NoError(t, err)
	wrong, last := vector("gone", 1, 2), vector("sums", 1, 2)
	wrong.Id, last.Id = "wrong", "last"
	last.Parameters = map[string]*proto.InferParameter{"triton_enable_empty_final_response": parameter(true)}
	require.NoError(t, errors.Join(stream.Send(wrong), stream.Send(last), stream.CloseSend()))
	parts := 0
	for range 4 {
		m, err := stream.Recv()
		require.NoError(t, err)
		switch final := m.InferResponse.Parameters[finalResponse].GetBoolParam(); {
		case m.InferResponse.Id == "wrong":
			if !strings.Contains(m.ErrorMessage, "no app of this name") {
				t.Error(m)
			}
		case final:
			if parts != 2 || len(m.InferResponse.RawOutputContents) != 0 || m.InferResponse.Parameters["query_id"].GetInt64Param() == 0 {
				t.Errorf("after %d parts came %v", parts, m)
			}
		default:
			if parts++; m.ErrorMessage != "" || m.InferResponse.Parameters["query_id"] != nil || string(m.InferResponse.RawOutputContents[0]) != string(doubles(float64(parts))) {
				t.Error(m)
			}
		}
	}
	if m, err := stream.Recv(); err == nil {
		t.Errorf("%v follows the last answer", m)
	}
}

// A call whose message does not come is given up, and those that are too many are refused.
func TestMessagesThatDoNotCome(t *testing.T) {
	c := start(t, Config{ReceiveTimeout: 50 * time.Millisecond, MaxReceiving: 2}, newFake(), admission.Config{})
	var streams [2]grpc.ClientStream
	for i := range streams {
		var err error
		if streams[i], err = c.conn.NewStream(t.Context(), &grpc.StreamDesc{ClientStreams: true}, proto.GRPCInferenceService_ModelInfer_FullMethodName); err != nil {
			t.Fatal(err)
		}
	}
	for range 20 { // which are not calls that wait
		_ = c.conn.Invoke(t.Context(), "/inference.GRPCInferenceService/Unknown", &proto.ServerLiveRequest{}, &proto.ServerLiveResponse{})
	}
	for _, s := range streams {
		if err := s.RecvMsg(&proto.ModelInferResponse{}); status.Code(err) != codes.Canceled {
			t.Error(err)
		}
	}
	if _, err := c.ModelInfer(t.Context(), vector("sums", 1, 2)); err != nil {
		t.Errorf("others are answered then: %v", err)
	}
}

// What does not fit the budget is refused, and takes nothing of it.
func TestLargeMessages(t *testing.T) {
	core := newFake()
	c := start(t, Config{MaxMessageBytes: 1 << 20}, core, admission.Config{})
	large := vector("sums", make([]float64, 1<<16)...)
	large.Inputs[0].Shape = []int64{1, 1 << 16}
	if _, err := c.ModelInfer(t.Context(), large); err != nil {
		t.Error(err)
	}
	huge := vector("sums", make([]float64, 1<<18)...)
	if _, err := c.ModelInfer(t.Context(), huge); status.Code(err) != codes.ResourceExhausted {
		t.Errorf("a message above the bound: %v", err)
	}
}
