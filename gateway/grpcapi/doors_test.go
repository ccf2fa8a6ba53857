package grpcapi

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/topsail-serving/topsail/gateway/admission"
	"github.com/topsail-serving/topsail/gateway/grpcapi/proto"
	"github.com/topsail-serving/topsail/serving"
	"github.com/topsail-serving/topsail/test/require"
)

// outcome is what became of one prediction, as the client sees it.
type outcome struct {
	isDefault bool
	cause     string // where the call says it
	err       error
}

// doors are the calls that ask for a prediction. The errors of Triton's streams are texts, without a code.
var doors = []struct {
	name  string
	parts bool // the answer comes in parts
	coded bool // errors have a code
	own   bool // a default is an answer, whether it fits or not
	ask   func(t *testing.T, c client, app string) outcome
}{
	{"ModelInfer", false, true, false, func(t *testing.T, c client, app string) outcome {
		got, err := c.ModelInfer(t.Context(), vector(app, 1, 2))
		return outcome{got.GetParameters()["default"].GetBoolParam(), "", err}
	}},
	{"ModelStreamInfer", false, false, false, func(t *testing.T, c client, app string) outcome { return tritonStream(t, c, app, false) }},
	{"ModelStreamInfer in parts", true, false, false, func(t *testing.T, c client, app string) outcome { return tritonStream(t, c, app, true) }},
	{"Predict", false, true, true, func(t *testing.T, c client, app string) outcome {
		got, err := proto.NewTopsailClient(c.conn).Predict(t.Context(), &proto.PredictRequest{App: app, Inputs: vectorTensor(1, 2)})
		return outcome{got.GetDefault(), got.GetDefaultCause(), err}
	}},
	{"PredictStream", true, true, true, func(t *testing.T, c client, app string) outcome {
		_, got, err := predictStream(t, t.Context(), c, app)
		return outcome{got.GetDefault(), got.GetDefaultCause(), err}
	}},
}

// tritonStream asks an app in a stream, which then goes on.
func tritonStream(t *testing.T, c client, app string, inParts bool) outcome {
	t.Helper()
	stream, err := c.ModelStreamInfer(t.Context())
	require.NoError(t, err)
	ask := func(app string) (got outcome) {
		m := vector(app, 1, 2)
		m.Id, m.Parameters = app, map[string]*proto.InferParameter{"triton_enable_empty_final_response": parameter(inParts)}
		require.NoError(t, stream.Send(m))
		for {
			m, err := stream.Recv()
			require.NoError(t, err)
			said := m.GetInferResponse().GetParameters()
			got.isDefault = got.isDefault || said["default"].GetBoolParam()
			switch {
			case m.GetInferResponse().GetId() != app:
				t.Errorf("of the request %q: %v", app, m)
			case m.GetErrorMessage() != "":
				got.err = errors.New(m.GetErrorMessage())
				return got
			case !inParts || said[finalResponse].GetBoolParam():
				return got
			}
		}
	}
	got := ask(app)
	if after := ask("beside"); after.err != nil || after.isDefault {
		t.Errorf("the stream does not go on after %v: %+v", got, after)
	}
	if err := stream.CloseSend(); err != nil {
		t.Error(err)
	}
	if m, err := stream.Recv(); !errors.Is(err, io.EOF) {
		t.Errorf("behind the last answer comes %v, %v", m, err)
	}
	return got
}

// atDoors runs a test of each call at a server of its own. The app "sums" does what the test makes of it, and an app beside it
// answers all the while.
func atDoors(t *testing.T, test func(t *testing.T, core *fakeCore, ask func(app string) outcome, at int)) {
	for at, door := range doors {
		t.Run(door.name, func(t *testing.T) {
			core := newFake()
			core.catalog.Apps["beside"] = &serving.App{Name: "beside", InputType: serving.Doubles}
			c := start(t, Config{}, core, admission.Config{})
			test(t, core, func(app string) outcome { return door.ask(t, c, app) }, at)
		})
	}
}

// Every call has the code of a cause where there is no answer: no default that fits, one that the app does not want shown, or
// an answer that is cut.
func TestDefaultsOfEveryCall(t *testing.T) {
	atDoors(t, func(t *testing.T, core *fakeCore, ask func(string) outcome, at int) {
		door := doors[at]
		for cause, want := range map[serving.Cause]codes.Code{
			serving.MissedSLO: codes.DeadlineExceeded, serving.NoReplica: codes.Unavailable, serving.Draining: codes.Unavailable, serving.RefusedFull: codes.ResourceExhausted,
			serving.RefusedLate: codes.ResourceExhausted, serving.ModelError: codes.Internal, serving.ContainerError: codes.Internal, serving.Dropped: codes.Internal, serving.BadInput: codes.InvalidArgument,
		} {
			for _, tt := range []struct {
				output        string
				defaultErrors bool
				parts         int
				answered      bool // with the default
			}{
				{"-1", false, 0, true}, {"null", false, 0, door.own}, {"-1", true, 0, door.own}, {"-1", false, 1, false},
			} {
				if tt.parts > 0 && !door.parts {
					continue
				}
				p := serving.Prediction{QueryID: 9, Output: []byte(tt.output), Default: true, Cause: cause, Explanation: "it is so"}
				core.catalog.Apps["sums"].DefaultErrors = tt.defaultErrors
				core.ends = func() (serving.Prediction, int, error) { return p, tt.parts, nil }
				got := ask("sums")
				name := fmt.Sprintf("%v, %+v: %+v", cause, tt, got)
				switch {
				case tt.answered && (got.err != nil || !got.isDefault || got.cause != "" && got.cause != cause.String() || got.cause == "" && door.own):
					t.Errorf("the default is no answer: %s", name)
				case !tt.answered && (got.err == nil || !strings.Contains(got.err.Error(), "it is so") || door.coded && status.Code(got.err) != want):
					t.Errorf("want %v: %s", want, name)
				}
			}
		}
	})
}

// What is refused, or fails, has one code and one text at every call.
func TestErrorsOfEveryCall(t *testing.T) {
	atDoors(t, func(t *testing.T, core *fakeCore, ask func(string) outcome, at int) {
		for _, tt := range []struct {
			err  error
			code codes.Code
			want string
		}{
			{&serving.QueryError{Cause: "it is wrong"}, codes.InvalidArgument, "it is wrong"},
			{&serving.QueryError{Cause: "no such version", UnknownVersion: true}, codes.NotFound, "no such version"},
			{serving.ErrUnknownApp, codes.NotFound, "no app of this name is registered"},
			{serving.ErrNoCatalog, codes.Unavailable, "has not loaded the apps yet"},
			{context.DeadlineExceeded, codes.DeadlineExceeded, "deadline had passed"},
			{errNoMemory, codes.Unavailable, "max_inflight_bytes"},
			{errors.New("a secret"), codes.Internal, "its log says why"},
		} {
			core.ends = func() (p serving.Prediction, parts int, err error) { return p, parts, fmt.Errorf("asking: %w", tt.err) }
			got := ask("sums")
			if got.err == nil || !strings.Contains(got.err.Error(), tt.want) || strings.Contains(got.err.Error(), "secret") || doors[at].coded && status.Code(got.err) != tt.code {
				t.Errorf("got %v, want %v: %s", got.err, tt.code, tt.want)
			}
		}
	})
}

func TestLimitsOfEveryCall(t *testing.T) {
	atDoors(t, func(t *testing.T, core *fakeCore, ask func(string) outcome, at int) {
		if got := ask("slow"); got.err != nil {
			t.Fatal(got.err)
		}
		got := ask("slow")
		if got.err == nil || !strings.Contains(got.err.Error(), `app "slow"`) {
			t.Fatal(got.err)
		}
		if !doors[at].coded {
			return
		}
		details := status.Convert(got.err).Details()
		if status.Code(got.err) != codes.ResourceExhausted || len(details) != 1 || details[0].(*errdetails.RetryInfo).RetryDelay.AsDuration() <= 0 {
			t.Errorf("%v, %v", got.err, details)
		}
	})
}

// Calls that a gateway that stops has no time for are to be sent to another one.
func TestCallsOfAGatewayThatStops(t *testing.T) {
	for _, door := range doors {
		if !door.coded {
			continue // the stream ends, which its client sees in the same way
		}
		core, asked := newFake(), make(chan struct{})
		core.answer = func(ctx context.Context, _ *serving.Query) (serving.Prediction, error) {
			close(asked)
			<-ctx.Done()
			return serving.Prediction{}, ctx.Err()
		}
		core.parts = &fakeParts{hang: true, waits: asked}
		c := start(t, Config{}, core, admission.Config{})
		go func() { <-asked; c.stop() }()
		if got := door.ask(t, c, "sums"); status.Code(got.err) != codes.Unavailable {
			t.Errorf("%s: %+v", door.name, got)
		}
	}
}
