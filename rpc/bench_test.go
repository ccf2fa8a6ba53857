package rpc

import (
	"context"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/topsail-serving/topsail/serving"
	"github.com/topsail-serving/topsail/test/require"
)

// The frames of a typical query: 13 doubles in, one double out.
var (
	benchAsk    = Ask{Budget: 20 * time.Millisecond, User: []byte("ann"), QueryID: 42, Trace: make([]byte, TraceSize)}
	benchInput  = serving.Input{Type: serving.Doubles, Data: make([]byte, 13*8)}
	benchAnswer = Answer{Payload: AppendPayload(nil, serving.Value{DType: serving.Float64, Data: make([]byte, 8)}), Confidence: 0.5, HasConfidence: true}
)

func benchPredict() []byte {
	b := AppendPredictHead(nil, PredictHead{Batch: 1, Model: 1, Count: 8})
	for range 8 {
		b = AppendAskInput(b, &benchAsk, benchInput)
	}
	return b
}

func benchReply() Frame {
	b := AppendReplyHead(nil, ReplyHead{Batch: 1, Count: 8})
	for range 8 {
		b = AppendAnswer(b, &benchAnswer)
	}
	return Frame{Kind: KindReply, Flags: FlagEnd, Body: b}
}

// readPredict and readReply walk a frame, and say how many entries it has.
func readPredict(body []byte, a *Ask) (n int, err error) {
	p, err := ParsePredict(Frame{Body: body})
	if err != nil {
		return 0, err
	}
	for p.Next(a) {
		n++
	}
	return n, p.Err()
}

func readReply(f Frame, a *Answer) (n int, err error) {
	r, err := ParseReply(f)
	if err != nil {
		return 0, err
	}
	for r.Next(a) {
		n++
	}
	return n, r.Err()
}

func TestTheHotPathsAllocateNothing(t *testing.T) {
	buf := make([]byte, 0, 4<<10)
	predict, reply := benchPredict(), benchReply()
	var ask Ask
	var answer Answer
	c, _ := pair(t, testHello, testHello)
	comp := &compressor{}
	comp.try(reply.Body)
	for name, do := range map[string]func(){
		"AppendAskInput": func() { AppendAskInput(AppendPredictHead(buf, PredictHead{Batch: 1, Count: 1}), &benchAsk, benchInput) },
		"AppendAsk":      func() { AppendAsk(buf, &Ask{Payload: benchAnswer.Payload, Age: time.Second}) },
		"AppendAnswer":   func() { AppendAnswer(AppendReplyHead(buf, ReplyHead{Batch: 1, Count: 1}), &benchAnswer) },
		"a failure":      func() { AppendAnswer(buf, &Answer{Status: StatusFull, Message: benchAsk.User}) },
		"PREDICT": func() {
			if n, err := readPredict(predict, &ask); n != 8 || err != nil {
				t.Errorf("%d inputs, %v", n, err)
			}
		},
		"REPLY": func() {
			if n, err := readReply(reply, &answer); n != 8 || err != nil {
				t.Errorf("%d answers, %v", n, err)
			}
		},
		"Begin and End": func() {
			b := AppendAskInput(c.Begin(KindPredict), &benchAsk, benchInput)
			if err := c.End(b, 0); err != nil {
				t.Error(err)
			}
			c.out = c.out[:0] // as the writer does
		},
	} {
		if n := testing.AllocsPerRun(100, do); n != 0 {
			t.Errorf("%s: %v allocations", name, n)
		}
	}
}

func BenchmarkAppendAskInput(b *testing.B) {
	buf := make([]byte, 0, 1<<10)
	b.ReportAllocs()
	for b.Loop() {
		buf = AppendAskInput(buf[:0], &benchAsk, benchInput)
	}
}

func BenchmarkParsePredict(b *testing.B) {
	body := benchPredict()
	var ask Ask
	b.ReportAllocs()
	b.SetBytes(int64(len(body)))
	for b.Loop() {
		if _, err := readPredict(body, &ask); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkAppendAnswer(b *testing.B) {
	buf := make([]byte, 0, 1<<10)
	b.ReportAllocs()
	for b.Loop() {
		buf = AppendAnswer(buf[:0], &benchAnswer)
	}
}

func BenchmarkParseReply(b *testing.B) {
	f := benchReply()
	var a Answer
	b.ReportAllocs()
	b.SetBytes(int64(len(f.Body)))
	for b.Loop() {
		if _, err := readReply(f, &a); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkParsePayload(b *testing.B) {
	payload := AppendInput(nil, benchInput)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := ParsePayload(payload); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkAnswerOutput(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		if _, err := benchAnswer.Output(); err != nil {
			b.Fatal(err)
		}
	}
}

// numbers are 4 KiB of doubles that repeat as measured data do.
func numbers() []byte {
	var body []byte
	for i := range 512 {
		body = appendF64(body, float64(i%50)/4)
	}
	return body
}

func BenchmarkCompress4KiB(b *testing.B) {
	body := numbers()
	var comp compressor
	small := 0
	b.ReportAllocs()
	b.SetBytes(int64(len(body)))
	for b.Loop() {
		small = len(comp.try(body))
	}
	if small == 0 {
		b.Fatal("the body does not compress")
	}
	b.ReportMetric(float64(len(body))/float64(small), "ratio")
}

func BenchmarkDecompress4KiB(b *testing.B) {
	body := numbers()
	var comp compressor
	small := comp.try(body)
	buf := make([]byte, 0, len(body))
	b.ReportAllocs()
	b.SetBytes(int64(len(body)))
	for b.Loop() {
		if _, err := decompress(buf, small, MaxFrame); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkSend is what a frame costs when many goroutines send, and how many
// frames share a write.
func BenchmarkSend(b *testing.B) {
	var writes atomic.Int64
	x, y := loopback(b, testHello, testHello, func(nc net.Conn) net.Conn { return &counted{Conn: nc, writes: &writes} })
	ctx, cancel := context.WithCancel(b.Context())
	waiting := make(chan struct{}, 1000) // frames on their way, as many as a gateway might wait for
	var wg sync.WaitGroup
	wg.Go(func() { _ = x.Run(ctx, Unexpected) })
	wg.Go(func() { _ = y.Run(ctx, func(Frame) error { <-waiting; return nil }) })
	b.ReportAllocs()
	b.SetParallelism(16)
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			waiting <- struct{}{}
			if err := x.End(AppendAskInput(x.Begin(KindPredict), &benchAsk, benchInput), 0); err != nil {
				b.Error(err)
				return
			}
		}
	})
	b.ReportMetric(float64(b.N)/float64(writes.Load()), "frames/write")
	cancel()
	wg.Wait()
}

func BenchmarkRoundTrip(b *testing.B) {
	x, y := loopback(b, testHello, testHello, plain)
	ctx, cancel := context.WithCancel(b.Context())
	back := make(chan struct{}, 1)
	var wg sync.WaitGroup
	wg.Go(func() { _ = x.Run(ctx, func(Frame) error { back <- struct{}{}; return nil }) })
	wg.Go(func() { _ = y.Run(ctx, func(f Frame) error { return y.Send(KindReply, FlagEnd, f.Body) }) })
	body := make([]byte, 150)
	b.ReportAllocs()
	for b.Loop() {
		require.NoError(b, x.Send(KindPredict, 0, body))
		<-back
	}
	cancel()
	wg.Wait()
}
