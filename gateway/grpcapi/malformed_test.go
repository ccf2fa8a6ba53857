package grpcapi

import (
	"bytes"
	"encoding/binary"
	"errors"
	"math"
	"net"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	googleproto "google.golang.org/protobuf/proto"

	"github.com/topsail-serving/topsail/gateway/admission"
	"github.com/topsail-serving/topsail/gateway/grpcapi/proto"
	"github.com/topsail-serving/topsail/serving"
	"github.com/topsail-serving/topsail/test/require"
)

// malformed are tensors that are wrong in themselves, and what is said of them. The first dimension of the shape is the batch.
var malformed = []struct {
	datatype string
	shape    []int64
	data     []byte
	want     string
}{
	{"FP64", []int64{1, 2}, doubles(1), "it has 8 bytes, and FP64[1,2] needs 16"},
	{"FP64", []int64{1, 2}, doubles(1, 2, 3), "it has 24 bytes"},
	{"FP64", []int64{1, 2}, nil, "it has 0 bytes"},
	{"FP64", []int64{1, 1 << 31}, doubles(1), "dimension 2147483648"},
	{"FP64", []int64{1, 1 << 30, 1 << 30}, doubles(1), "more than 2^31 elements"},
	{"FP64", []int64{1, 1 << 21, 1 << 21, 1 << 22}, nil, "more than 2^31 elements"}, // 2^64 of them
	{"FP64", []int64{1, math.MaxInt64}, doubles(1), "dimension 9223372036854775807"},
	{"FP64", []int64{1, math.MinInt64}, doubles(1), "dimension -9223372036854775808"},
	{"FP64", []int64{1, -1}, doubles(1), "dimension -1"},
	{"FP64", slices.Repeat([]int64{1}, serving.MaxDims+2), doubles(1), "more than 8 dimensions"},
	{"BYTES", []int64{1, 1}, []byte{255, 255, 255, 255}, "it ends before the last of 1 elements"},
	{"BYTES", []int64{1, 1}, []byte{3, 0, 0, 0, 'a', 'b'}, "it ends before the last of 1 elements"},
	{"BYTES", []int64{1, 1}, []byte{1, 0}, "it ends before the last of 1 elements"},
	{"BYTES", []int64{1, 1 << 30}, []byte{0, 0, 0, 0}, "it ends before the last of 1073741824 elements"},
	{"BYTES", []int64{1, 1}, []byte{1, 0, 0, 0, 'a', 'b'}, "1 bytes follow the last of 1 elements"},
	{"FLOAT", []int64{1, 1}, doubles(1), "FLOAT"},
	{"", []int64{1, 1}, doubles(1), `datatype "" is unknown`},
}

// What is malformed is an error that says what is wrong, and the stream, or the connection, serves on.
func TestMalformedTensors(t *testing.T) {
	c := start(t, Config{}, newFake(), admission.Config{})
	topsail := proto.NewTopsailClient(c.conn)
	stream, err := c.ModelStreamInfer(t.Context())
	require.NoError(t, err)
	inStream := func(m *proto.ModelInferRequest) error {
		require.NoError(t, stream.Send(m))
		got, err := stream.Recv()
		require.NoError(t, err)
		if got.GetErrorMessage() != "" {
			return status.Error(codes.InvalidArgument, got.GetErrorMessage())
		}
		return nil
	}
	doors := map[string]func(tensors []*proto.Tensor) error{
		"ModelStreamInfer": func(tensors []*proto.Tensor) error {
			m := &proto.ModelInferRequest{ModelName: "sums"}
			for _, tensor := range tensors {
				m.Inputs = append(m.Inputs, &proto.ModelInferRequest_InferInputTensor{Name: tensor.Name, Datatype: tensor.Datatype, Shape: tensor.Shape})
				m.RawInputContents = append(m.RawInputContents, tensor.Data)
			}
			return inStream(m)
		},
		"Predict": func(tensors []*proto.Tensor) error {
			_, err := topsail.Predict(t.Context(), &proto.PredictRequest{App: "sums", Inputs: rowOf(tensors)})
			return err
		},
		"PredictStream": func(tensors []*proto.Tensor) error {
			stream, err := topsail.PredictStream(t.Context(), &proto.PredictRequest{App: "sums", Inputs: rowOf(tensors)})
			if err == nil {
				_, err = stream.Recv()
			}
			return err
		},
		"Feedback": func(tensors []*proto.Tensor) error {
			_, err := topsail.Feedback(t.Context(), &proto.FeedbackRequest{App: "sums", Inputs: rowOf(tensors), Judgement: &proto.FeedbackRequest_Reward{Reward: 1}})
			return err
		},
	}
	good := []*proto.Tensor{{Name: "input", Datatype: "FP64", Shape: []int64{1, 2}, Data: doubles(1, 2)}}
	for name, ask := range doors {
		refused := func(tensors []*proto.Tensor, want string) {
			if err := ask(tensors); status.Code(err) != codes.InvalidArgument || !strings.Contains(err.Error(), want) {
				t.Errorf("%s: got %v, want %s", name, err, want)
			}
			if err := ask(good); err != nil {
				t.Errorf("%s: after %s: %v", name, want, err)
			}
		}
		for _, tt := range malformed {
			refused([]*proto.Tensor{{Name: "input", Datatype: tt.datatype, Shape: tt.shape, Data: tt.data}}, tt.want)
		}
		refused(nil, "input")
		refused(slices.Repeat(good, 10_000), "64")
		refused(slices.Repeat(good, 2), `"input"`)
	}
	for want, m := range map[string]*proto.ModelInferRequest{
		"the batch has 2147483647 rows": {ModelName: "sums", Inputs: []*proto.ModelInferRequest_InferInputTensor{{Name: "input", Datatype: "FP64", Shape: []int64{math.MaxInt32, 0}}}, RawInputContents: [][]byte{nil}},
		"the contents have 1 elements":  {ModelName: "sums", Inputs: []*proto.ModelInferRequest_InferInputTensor{{Name: "input", Datatype: "FP64", Shape: []int64{1, 1 << 30}, Contents: &proto.InferTensorContents{Fp64Contents: []float64{1}}}}},
		"there are 10000, and 1 inputs": {ModelName: "sums", Inputs: []*proto.ModelInferRequest_InferInputTensor{{Name: "input", Datatype: "FP64", Shape: []int64{1, 1}}}, RawInputContents: make([][]byte, 10_000)},
	} {
		if err := inStream(m); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %s", err, want)
		}
	}
	if err := inStream(vector("sums", 1, 2)); err != nil {
		t.Errorf("the stream does not go on: %v", err)
	}
}

// rowOf are tensors without their batch.
func rowOf(tensors []*proto.Tensor) (row []*proto.Tensor) {
	for _, tensor := range tensors {
		row = append(row, &proto.Tensor{Name: tensor.Name, Datatype: tensor.Datatype, Shape: tensor.Shape[1:], Data: tensor.Data})
	}
	return row
}

// wire is a client that writes frames of HTTP/2 as the test wants them.
type wire struct {
	*testing.T
	net.Conn
	*http2.Framer
	next uint32
}

func dialWire(t *testing.T, c client) *wire {
	t.Helper()
	conn, err := net.Dial("tcp", strings.TrimPrefix(c.conn.Target(), "passthrough:"))
	require.NoError(t, err)
	require.NoError(t, conn.SetDeadline(time.Now().Add(time.Minute)))
	return newWire(t, conn)
}

func newWire(t *testing.T, conn net.Conn) *wire {
	t.Helper()
	t.Cleanup(func() { conn.Close() })
	w := &wire{T: t, Conn: conn, Framer: http2.NewFramer(conn, conn), next: 1}
	w.ReadMetaHeaders = hpack.NewDecoder(4096, nil)
	_, err := conn.Write([]byte(http2.ClientPreface))
	require.NoError(t, errors.Join(err, w.WriteSettings()))
	return w
}

// call begins a call of a method, and returns its stream.
func (w *wire) call(method string) uint32 {
	w.Helper()
	id := w.next
	w.next += 2
	var b bytes.Buffer
	headers := hpack.NewEncoder(&b)
	for _, h := range [][2]string{{":method", "POST"}, {":scheme", "http"}, {":path", method}, {":authority", "topsail"}, {"content-type", "application/grpc"}, {"te", "trailers"}} {
		require.NoError(w, headers.WriteField(hpack.HeaderField{Name: h[0], Value: h[1]}))
	}
	require.NoError(w, w.WriteHeaders(http2.HeadersFrameParam{StreamID: id, BlockFragment: b.Bytes(), EndHeaders: true}))
	return id
}

// end is the code, and the text, with which a call ends; "reset" if it has none.
func (w *wire) end(id uint32) (code, text string) {
	w.Helper()
	for {
		f, err := w.ReadFrame()
		require.NoError(w, err)
		switch f := f.(type) {
		case *http2.SettingsFrame:
			if !f.IsAck() {
				err = w.WriteSettingsAck()
			}
		case *http2.PingFrame:
			if !f.IsAck() {
				err = w.WritePing(true, f.Data)
			}
		case *http2.RSTStreamFrame:
			if f.StreamID == id {
				return "reset", f.ErrCode.String()
			}
		case *http2.MetaHeadersFrame:
			if f.StreamID == id && f.StreamEnded() {
				for _, h := range f.Fields {
					switch h.Name {
					case "grpc-status":
						code = h.Value
					case "grpc-message":
						text = h.Value
					}
				}
				return code, text
			}
		}
		require.NoError(w, err)
	}
}

// serves fails the test unless a call of the connection is answered.
func (w *wire) serves(after string) {
	w.Helper()
	id := w.call(proto.GRPCInferenceService_ModelInfer_FullMethodName)
	require.NoError(w, w.WriteData(id, true, message(w.T, vector("sums", 1, 2))))
	if code, text := w.end(id); code != "0" {
		w.Errorf("after %s the connection answers %s: %s", after, code, text)
	}
}

// message is one as it goes over the wire: without compression, and with its length.
func message(t *testing.T, m googleproto.Message) []byte {
	t.Helper()
	b, err := googleproto.Marshal(m)
	require.NoError(t, err)
	return append(binary.BigEndian.AppendUint32([]byte{0}, uint32(len(b))), b...)
}

// requests are a message of each method that asks for predictions.
func requests(t *testing.T) map[string][]byte {
	own := message(t, &proto.PredictRequest{App: "sums", Inputs: vectorTensor(1, 2)})
	return map[string][]byte{
		proto.GRPCInferenceService_ModelInfer_FullMethodName: message(t, vector("sums", 1, 2)), proto.GRPCInferenceService_ModelStreamInfer_FullMethodName: message(t, vector("sums", 1, 2)),
		proto.Topsail_Predict_FullMethodName: own, proto.Topsail_PredictStream_FullMethodName: own,
	}
}

// A message that ends within itself, by the end of its stream or by a reset, ends its call, and the connection serves on.
func TestMessagesThatAreCut(t *testing.T) {
	core := newFake()
	w := dialWire(t, start(t, Config{}, core, admission.Config{}))
	for method, whole := range requests(t) {
		for _, cut := range []int{1, 4, 5, 6, len(whole) / 2, len(whole) - 1} {
			id := w.call(method)
			require.NoError(t, w.WriteData(id, true, whole[:cut]))
			if code, text := w.end(id); code == "0" || code == "" {
				t.Errorf("%s cut at %d of %d: %s, %s", method, cut, len(whole), code, text)
			}
			id = w.call(method)
			require.NoError(t, errors.Join(w.WriteData(id, false, whole[:cut]), w.WriteRSTStream(id, http2.ErrCodeCancel)))
			before := len(core.queries())
			w.serves(method)
			if n := len(core.queries()); n != before+1 {
				t.Fatalf("%s cut at %d of %d: %d queries were asked", method, cut, len(whole), n-before-1)
			}
		}
	}
}

// A connection that ends within a message leaves nothing behind, which start asserts, and others are answered.
func TestConnectionsThatAreCut(t *testing.T) {
	core := newFake()
	c := start(t, Config{}, core, admission.Config{})
	for method, whole := range requests(t) {
		for _, cut := range []int{0, 3, 5, len(whole) - 1} {
			w := dialWire(t, c)
			id := w.call(method)
			require.NoError(t, w.WriteData(id, false, whole[:cut]))
			w.serves(method) // when the server has read it
			w.Close()
		}
	}
	asked := len(core.queries())
	if _, err := c.ModelInfer(t.Context(), vector("sums", 1, 2)); err != nil || asked != 16 {
		t.Errorf("%v, after %d queries", err, asked)
	}
}

// What is no message of gRPC's, or of the service's, ends its call, and the connection serves on.
func TestMessagesThatAreNone(t *testing.T) {
	core := newFake()
	w := dialWire(t, start(t, Config{MaxMessageBytes: 1 << 20}, core, admission.Config{}))
	for method, whole := range requests(t) {
		for name, tt := range map[string]struct {
			data []byte
			code codes.Code
			want string
		}{
			"a length that lies":     {append([]byte{0, 255, 255, 255, 255}, whole[5:]...), codes.ResourceExhausted, "larger than max (4294967295 vs. 1048576)"},
			"an unknown compression": {append([]byte{1}, whole[1:]...), codes.Internal, "compress"},
			"an unknown flag":        {append([]byte{7}, whole[1:]...), codes.Internal, "payload format"},
			"no protobuf":            {[]byte{0, 0, 0, 0, 3, 255, 255, 255}, codes.Internal, "unmarshal"},
			"a field that is longer": {[]byte{0, 0, 0, 0, 2, 10, 100}, codes.Internal, "unmarshal"},
			"a name that is no text": {[]byte{0, 0, 0, 0, 3, 10, 1, 255}, codes.Internal, "UTF-8"},
		} {
			id := w.call(method)
			require.NoError(t, w.WriteData(id, true, tt.data))
			code, text := w.end(id)
			if code != strconv.Itoa(int(tt.code)) || !strings.Contains(text, tt.want) {
				t.Errorf("%s of %s: %s, %q", name, method, code, text)
			}
			w.serves(name)
		}
	}
	if seen := core.queries(); len(seen) != 4*6 {
		t.Errorf("%d queries were asked", len(seen))
	}
}
