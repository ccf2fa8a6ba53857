package v1_test

import (
	"context"
	"encoding/binary"
	"errors"
	"io"
	"math"
	"net"
	"slices"
	"strings"
	"testing"

	v1 "github.com/topsail-serving/topsail/rpc/v1"
	"github.com/topsail-serving/topsail/rpc/v1/v1test"
	"github.com/topsail-serving/topsail/serving"
	"github.com/topsail-serving/topsail/test/require"
)

// first answers every vector of doubles with its first element.
func first(b v1.Batch) []float64 {
	outputs := make([]float64, len(b.Inputs))
	for i, in := range b.Inputs {
		outputs[i] = math.Float64frombits(binary.LittleEndian.Uint64(in))
	}
	return outputs
}

// lengths answers every input with its length in bytes.
func lengths(b v1.Batch) []float64 {
	outputs := make([]float64, len(b.Inputs))
	for i, in := range b.Inputs {
		outputs[i] = float64(len(in))
	}
	return outputs
}

func doubles(values ...float64) [][]byte {
	inputs := make([][]byte, len(values))
	for i, x := range values {
		inputs[i] = binary.LittleEndian.AppendUint64(nil, math.Float64bits(x))
	}
	return inputs
}

func dial(t testing.TB, addr string) *v1.Client {
	t.Helper()
	c, err := v1.Dial(t.Context(), addr)
	require.NoError(t, err)
	t.Cleanup(func() { c.Close() })
	return c
}

// mustPredict sends a batch that must be answered in order.
func mustPredict(t testing.TB, c *v1.Client, values ...float64) {
	t.Helper()
	got, err := c.PredictBatch(t.Context(), serving.Doubles, 1, doubles(values...))
	if err != nil || !slices.Equal(got, values) {
		t.Fatalf("got %v, %v; want %v", got, err, values)
	}
}

// mustBeClosed says that the client is of no more use, whatever the container does.
func mustBeClosed(t testing.TB, c *v1.Client) {
	t.Helper()
	if got, err := c.PredictBatch(t.Context(), serving.Doubles, 1, doubles(1)); !errors.Is(err, v1.ErrClosed) {
		t.Fatalf("a batch after a failure got %v, %v; want ErrClosed", got, err)
	}
	if err := c.Shutdown(t.Context()); !errors.Is(err, v1.ErrClosed) {
		t.Fatalf("a shutdown after a failure got %v; want ErrClosed", err)
	}
}

func TestPredictBatch(t *testing.T) {
	c := dial(t, v1test.Start(t, first).Addr())
	mustPredict(t, c, 1, 2, 3)
	mustPredict(t, c, -7)
	mustPredict(t, c, slices.Repeat([]float64{4}, 10_000)...)
}

func TestPredictBatchOfEveryType(t *testing.T) {
	var formats []v1.Format
	c := dial(t, v1test.Start(t, func(b v1.Batch) []float64 {
		formats = append(formats, b.Format)
		return lengths(b)
	}).Addr())
	for _, kind := range allTypes {
		long, short := make([]byte, 16), make([]byte, 8)
		wide := 1.0
		if kind == serving.Floats {
			wide = 2
		}
		for _, inputs := range [][][]byte{{long, long}, {long, short}} {
			got, err := c.PredictBatch(t.Context(), kind, 0, inputs)
			want := []float64{wide * float64(len(inputs[0])), wide * float64(len(inputs[1]))}
			if err != nil || !slices.Equal(got, want) {
				t.Fatalf("%v: got %v, %v; want %v", kind, got, err, want)
			}
		}
	}
	want := []v1.Format{v1.FixedBytes, v1.VariableBytes, v1.FixedInts, v1.VariableInts,
		v1.FixedDoubles, v1.VariableDoubles, v1.FixedDoubles, v1.VariableDoubles, v1.Strings, v1.Strings}
	if !slices.Equal(formats, want) {
		t.Errorf("formats %v, want %v", formats, want)
	}
}

func TestUnsendableBatchKeepsTheConnection(t *testing.T) {
	c := dial(t, v1test.Start(t, first).Addr())
	if _, err := c.PredictBatch(t.Context(), serving.Doubles, 2, doubles(1)); err == nil {
		t.Fatal("a batch of the wrong length was sent")
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := c.PredictBatch(ended, serving.Doubles, 1, doubles(1)); !errors.Is(err, context.Canceled) {
		t.Fatalf("got %v, want context.Canceled", err)
	}
	mustPredict(t, c, 5)
}

func TestContainerFaultsCloseTheClient(t *testing.T) {
	for _, f := range []struct {
		name  string
		fault v1test.Fault
		says  string
	}{
		{"close early", v1test.CloseEarly, "received 0 of 16 reply bytes: the container closed the connection"},
		{"short reply", v1test.ShortReply, "received 15 of 16 reply bytes: the container closed the connection"},
		{"surplus", v1test.Surplus, "more than one output per input"},
		{"garbage", v1test.Garbage, "more than one output per input"},
	} {
		t.Run(f.name, func(t *testing.T) {
			container := v1test.Start(t, first)
			c := dial(t, container.Addr())
			mustPredict(t, c, 1)
			container.Misbehave(f.fault)
			got, err := c.PredictBatch(t.Context(), serving.Doubles, 1, doubles(8, 9))
			if err == nil || !strings.Contains(err.Error(), f.says) {
				t.Fatalf("got %v, %v; want an error that says %q", got, err, f.says)
			}
			container.Misbehave(v1test.None)
			mustBeClosed(t, c)
			mustPredict(t, dial(t, container.Addr()), 2)
		})
	}
}

// TestStallEndsWithItsCause, as a deadline is one.
func TestStallEndsWithItsCause(t *testing.T) {
	for _, cause := range []error{context.DeadlineExceeded, errors.New("the sidecar drains")} {
		ctx, cancel := context.WithCancelCause(t.Context())
		container := v1test.Start(t, func(b v1.Batch) []float64 {
			cancel(cause) // the request is there: the client can only be waiting
			return first(b)
		})
		container.Misbehave(v1test.Stall)
		c := dial(t, container.Addr())
		_, err := c.PredictBatch(ctx, serving.Doubles, 1, doubles(1))
		if !errors.Is(err, cause) || !strings.Contains(err.Error(), "0 of 8 reply bytes") {
			t.Fatalf("got %v, want %v, with 0 of 8 reply bytes", err, cause)
		}
		mustBeClosed(t, c)
	}
}

// A container that reads nothing stalls the sending of a batch as well.
func TestSendingEndsWithTheContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	unread := make(chan struct{})
	addr := listen(t, func(conn net.Conn) {
		conn.Read(make([]byte, 1))
		cancel()
		<-unread
	})
	c := dial(t, addr)
	_, err := c.PredictBatch(ctx, serving.Bytes, 0, [][]byte{make([]byte, 32<<20)})
	close(unread)
	if !errors.Is(err, context.Canceled) || !strings.Contains(err.Error(), "send the request") {
		t.Fatalf("got %v", err)
	}
	mustBeClosed(t, c)
}

func TestCloseInterruptsABatch(t *testing.T) {
	var c *v1.Client
	container := v1test.Start(t, func(b v1.Batch) []float64 {
		c.Close()
		return first(b)
	})
	container.Misbehave(v1test.Stall)
	c = dial(t, container.Addr())
	if _, err := c.PredictBatch(t.Context(), serving.Doubles, 1, doubles(1)); !errors.Is(err, net.ErrClosed) {
		t.Fatalf("got %v, want net.ErrClosed", err)
	}
	mustBeClosed(t, c)
}

// listen starts a container of one connection that does as the script says.
func listen(t testing.TB, script func(net.Conn)) (addr string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		conn, err := l.Accept()
		if err != nil {
			return
		}
		defer conn.Close()
		script(conn)
	}()
	t.Cleanup(func() {
		l.Close()
		<-ended
	})
	return l.Addr().String()
}

// What comes between two batches is found before the second is sent.
func TestLateSurplus(t *testing.T) {
	answered, surplus := make(chan struct{}), make(chan struct{})
	received := make(chan v1.Batch, 2)
	addr := listen(t, func(conn net.Conn) {
		for range 2 {
			batch, err := v1.DecodeBatch(conn)
			if err != nil {
				return
			}
			received <- batch
			conn.Write(v1.AppendReply(nil, first(batch)))
			<-answered
			conn.Write([]byte{1})
			close(surplus)
		}
	})
	c := dial(t, addr)
	mustPredict(t, c, 3)
	close(answered)
	<-surplus
	_, err := c.PredictBatch(t.Context(), serving.Doubles, 1, doubles(4))
	if err == nil || !strings.Contains(err.Error(), "more than one output per input") {
		t.Fatalf("got %v", err)
	}
	if len(received) != 1 {
		t.Errorf("the container received %d batches, want 1", len(received))
	}
	mustBeClosed(t, c)
}

// A container that ended between two batches is noticed before the second is sent.
func TestClosedBetweenBatches(t *testing.T) {
	closed := make(chan struct{})
	addr := listen(t, func(conn net.Conn) {
		defer close(closed)
		batch, err := v1.DecodeBatch(conn)
		if err == nil {
			conn.Write(v1.AppendReply(nil, first(batch)))
		}
		conn.Close()
	})
	c := dial(t, addr)
	mustPredict(t, c, 3)
	<-closed
	_, err := c.PredictBatch(t.Context(), serving.Doubles, 1, doubles(4))
	if !errors.Is(err, io.EOF) || !strings.Contains(err.Error(), "send the request") {
		t.Fatalf("got %v", err)
	}
	mustBeClosed(t, c)
}

func TestShutdown(t *testing.T) {
	c := dial(t, v1test.Start(t, first).Addr())
	mustPredict(t, c, 1)
	require.NoError(t, c.Shutdown(t.Context()))
	mustBeClosed(t, c)
}

func TestShutdownWithTheWrongWord(t *testing.T) {
	c := dial(t, listen(t, func(conn net.Conn) {
		if _, err := v1.DecodeBatch(conn); err == nil {
			conn.Write([]byte{1, 0, 0, 0})
		}
	}))
	if err := c.Shutdown(t.Context()); err == nil || !strings.Contains(err.Error(), "answered 1") {
		t.Fatalf("got %v", err)
	}
	mustBeClosed(t, c)
}

func TestDialFails(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	l.Close()
	if c, err := v1.Dial(t.Context(), l.Addr().String()); err == nil {
		c.Close()
		t.Fatal("connected to a closed port")
	}
}
