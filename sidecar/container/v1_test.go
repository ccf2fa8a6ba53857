package container

import (
	"errors"
	"net"
	"slices"
	"strings"
	"testing"

	"github.com/topsail-serving/topsail/rpc"
	v1 "github.com/topsail-serving/topsail/rpc/v1"
	"github.com/topsail-serving/topsail/rpc/v1/v1test"
	"github.com/topsail-serving/topsail/serving"
	"github.com/topsail-serving/topsail/sidecar/queue"
	"github.com/topsail-serving/topsail/test/require"
)

// sizes answers each input with its length in bytes.
func sizes(b v1.Batch) []float64 {
	var out []float64
	for _, in := range b.Inputs {
		out = append(out, float64(len(in)))
	}
	return out
}

func dialV1(t *testing.T, addr string, kind serving.InputType, length int) *V1 {
	t.Helper()
	model := &serving.Version{ModelID: serving.ModelID{Model: "m", Version: "1"}, InputType: kind, InputLength: length, Container: serving.Container{Addr: addr, Protocol: "v1"}}
	r, err := DialV1(t.Context(), model)
	require.NoError(t, err)
	t.Cleanup(func() { r.Close() })
	return r
}

// numbers gets the answers of a version 1 container.
type numbers map[*queue.Item]rpc.Answer

func (n numbers) Answer(it *queue.Item, a *rpc.Answer) {
	kept := *a
	kept.Payload = append([]byte(nil), a.Payload...)
	n[it] = kept
}

func (n numbers) item(values ...serving.Value) *queue.Item {
	return &queue.Item{From: n, Ask: rpc.Ask{Payload: rpc.AppendPayload(nil, values...)}}
}

func vector(kind serving.InputType, elements int) serving.Value {
	return serving.Input{Type: kind, Data: make([]byte, elements*max(1, kind.DType().Size()))}.Value()
}

func TestV1AnswersEachInput(t *testing.T) {
	c := v1test.Start(t, sizes)
	for _, kind := range []serving.InputType{serving.Bytes, serving.Ints, serving.Floats, serving.Doubles, serving.Strings} {
		r, got := dialV1(t, c.Addr(), kind, 0), numbers{}
		var items []*queue.Item
		for elements := range 5 {
			items = append(items, got.item(vector(kind, elements)))
		}
		require.NoError(t, runV1(r, items))
		size := map[serving.InputType]int{serving.Bytes: 1, serving.Ints: 4, serving.Floats: 8, serving.Doubles: 8, serving.Strings: 1}[kind]
		for i, it := range items {
			out, err := new(got[it]).Output()
			if want := serving.Number(float64(i * size)); err != nil || string(out.Value.Data) != string(want.Data) {
				t.Errorf("%v: input %d got %+v, %v", kind, i, out, err)
			}
		}
	}
}

// runV1 runs one batch.
func runV1(r *V1, items []*queue.Item) error {
	ended := make(chan error, 1)
	r.Begin(items, func(err error) { ended <- err })
	return <-ended
}

// An input that version 1 cannot carry must not keep those beside it from being
// answered, nor cost the connection.
func TestV1RefusesWhatItCannotCarry(t *testing.T) {
	c := v1test.Start(t, sizes)
	r, got := dialV1(t, c.Addr(), serving.Doubles, 2), numbers{}
	bad := map[*queue.Item]string{
		got.item(): "takes one value",
		got.item(vector(serving.Doubles, 2), vector(serving.Doubles, 2)): "takes one value",
		got.item(vector(serving.Ints, 2)):                                "of type float64",
		got.item(vector(serving.Doubles, 3)):                             "takes inputs of length 2, not 3",
		{From: got, Ask: rpc.Ask{Payload: []byte{1}}}:                    "bad payload",
	}
	good := got.item(vector(serving.Doubles, 2))
	var all []*queue.Item
	for it := range bad {
		all = append(all, it)
	}
	for _, batch := range [][]*queue.Item{append(slices.Clip(all), good), all} {
		require.NoError(t, runV1(r, batch))
	}
	for it, says := range bad {
		if a := got[it]; a.Status != rpc.StatusBadInput || !strings.Contains(string(a.Message), says) {
			t.Errorf("%v %q, want a bad input that says %q", a.Status, a.Message, says)
		}
	}
	if got[good].Status != rpc.StatusOK {
		t.Errorf("the good input got %v %q", got[good].Status, got[good].Message)
	}
}

func TestV1Fails(t *testing.T) {
	for _, f := range []struct {
		fault v1test.Fault
		says  string
	}{
		{v1test.CloseEarly, "closed the connection"},
		{v1test.ShortReply, "15 of 16 reply bytes"},
		{v1test.Surplus, "more than one output per input"},
		{v1test.Garbage, "more than one output per input"},
		{v1test.Stall, "the container stalled"},
	} {
		asked := make(chan struct{}, 1)
		c := v1test.Start(t, func(b v1.Batch) []float64 {
			asked <- struct{}{}
			return sizes(b)
		})
		c.Misbehave(f.fault)
		r, got := dialV1(t, c.Addr(), serving.Doubles, 0), numbers{}
		ended := make(chan error, 1)
		giveUp := r.Begin([]*queue.Item{got.item(vector(serving.Doubles, 1)), got.item(vector(serving.Doubles, 1))}, func(err error) { ended <- err })
		if f.fault == v1test.Stall {
			<-asked
			giveUp() // as when its time is over
		}
		err := <-ended
		if err == nil || !strings.Contains(err.Error(), f.says) || !strings.Contains(err.Error(), "version 1 container at "+c.Addr()) {
			t.Errorf("fault %d: %v, want an error that says %q and where", f.fault, err, f.says)
		}
		if errors.Is(err, ErrStalled) != (f.fault == v1test.Stall) {
			t.Errorf("fault %d: stalled is wrong in %v", f.fault, err)
		}
		if len(got) != 0 {
			t.Errorf("fault %d: answers %v of a container that lied", f.fault, got)
		}
	}
}

func TestV1WithoutAContainer(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	l.Close()
	model := &serving.Version{Container: serving.Container{Addr: l.Addr().String()}}
	if _, err := DialV1(t.Context(), model); err == nil {
		t.Error("connected to a closed port")
	}
}
