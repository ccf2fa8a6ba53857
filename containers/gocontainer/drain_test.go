package gocontainer

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/topsail-serving/topsail/rpc"
	"github.com/topsail-serving/topsail/serving"
)

// An older sidecar sends batches, and gets no parts.
func TestBatchesOfAnOlderSidecar(t *testing.T) {
	var most, running atomic.Int32
	predict := func(ctx context.Context, q *Query, part func(...serving.Value) error) Result {
		most.Store(max(most.Load(), running.Add(1)))
		defer running.Add(-1)
		return spell(ctx, q, part)
	}
	cfg := deskConfig{Config: Config{Concurrency: 2}}
	atDesk(t, cfg, predict, func(d *desk) {
		d.ask(1, rpc.AskParts, "aaa", "bb", "cc", "d")
		pass(time.Minute)
		got := d.got(1)
		if len(got) != 4 {
			t.Fatalf("got %q", got)
		}
		for i, s := range got {
			if strings.HasSuffix(s, " END") != (i == 3) {
				t.Errorf("answer %d is %q", i, s)
			}
		}
		slices.Sort(got)
		for i, want := range []string{"0 ok aaa", "1 ok bb", "2 ok cc", "3 ok d"} {
			if !strings.HasPrefix(got[i], want) {
				t.Errorf("answer %d is %q", i, got[i])
			}
		}
		if most.Load() != 2 {
			t.Errorf("%d ran side by side", most.Load())
		}
		d.ask(2, 0, "aaaaaaaaaa", "b", "cccccccccc", "d")
		pass(1500 * time.Millisecond)
		d.cancel(2)
		pass(0)
		if got := d.got(2); len(got) != 4 || !strings.Contains(got[3], "cancelled") {
			t.Errorf("after a cancel %q", got)
		}
	})
}

func TestExpiredAndBrokenQueries(t *testing.T) {
	atDesk(t, partsToo, spell, func(d *desk) {
		b := rpc.AppendPredictHead(nil, rpc.PredictHead{Batch: 1, Model: 1, Count: 1})
		d.conn.Send(rpc.KindPredict, 0, rpc.AppendAsk(b, &rpc.Ask{Payload: rpc.AppendPayload(nil, serving.Text("a"))}))
		pass(0)
		d.expect(1, "0 expired the deadline passed before the batch END")
		d.conn.Send(rpc.KindPredict, 0, b)
		pass(0)
		if _, broken := errors.AsType[*rpc.ProtocolError](d.ended); !broken {
			t.Errorf("a broken frame ended the connection with %v", d.ended)
		}
	})
}

func TestDrain(t *testing.T) {
	atDesk(t, partsToo, spell, func(d *desk) {
		d.ask(1, 0, "abcdef")
		pass(time.Second)
		d.stop()
		pass(time.Second)
		d.ask(2, 0, "x") // it was on its way
		if pass(0); !d.drained {
			t.Error("the sidecar does not know")
		}
		pass(5 * time.Second)
		d.expect(1, "0 ok abcdef END")
		d.expect(2, "0 ok x END")
		d.conn.Send(rpc.KindBye, 0, rpc.AppendBye(nil, "all is answered"))
		<-d.done
	})
}

func TestAnswersInPartsEndAfterAStop(t *testing.T) {
	atDesk(t, partsToo, spell, func(d *desk) {
		d.ask(1, 0, strings.Repeat("a", 1000))
		pass(time.Second)
		stopped := time.Now()
		d.stop()
		pass(1000 * time.Second)
		d.expect(1, "0 ok "+strings.Repeat("a", 1000)+" END")
		<-d.done // the sidecar is silent
		if took := time.Since(stopped); took != serving.MaxStream {
			t.Errorf("it took %v", took)
		}
	})
}

// While the sidecar does not read, the model waits, until the connection is given up.
func TestPartsWaitForTheSidecar(t *testing.T) {
	var parts atomic.Int64
	var failed error
	predict := func(_ context.Context, _ *Query, part func(...serving.Value) error) Result {
		value := serving.Value{DType: serving.String, Data: make([]byte, 60_000)}
		for failed = part(value); failed == nil; failed = part(value) {
			parts.Add(1)
		}
		return Result{}
	}
	cfg := partsToo
	cfg.deaf = true
	atDesk(t, cfg, predict, func(d *desk) {
		d.ask(1, rpc.AskParts, "")
		pass(time.Second)
		if n := parts.Load() * 60_000; n < 120<<20 || n > 257<<20 { // as much may be in the writer's hands
			t.Errorf("%d bytes wait", n)
		}
		<-d.done
		if !errors.Is(failed, errLost) {
			t.Errorf("part said %v", failed)
		}
	})
}

func TestMetricsAreReportedOnceASecond(t *testing.T) {
	calls := 0
	cfg := partsToo
	cfg.Metrics = func() []rpc.Metric {
		if calls++; calls == 2 {
			panic("no idea")
		}
		return []rpc.Metric{{Kind: rpc.MetricGauge, Name: "x", Value: 1}}
	}
	atDesk(t, cfg, spell, func(d *desk) {
		start := time.Now()
		pass(3500 * time.Millisecond)
		if got := fmt.Sprint(since(start, d.reports)); got != "[0s 2s 3s]" {
			t.Errorf("reports came after %v", got)
		}
	})
}
