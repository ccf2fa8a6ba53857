package predict

import (
	"context"
	"fmt"
	"net"
	"testing"
	"time"

	"github.com/topsail-serving/topsail/rpc"
	"github.com/topsail-serving/topsail/serving"
	"github.com/topsail-serving/topsail/test/require"
)

// BenchmarkPredict is one query: answered from the cache, or by a replica that
// answers at once over loopback TCP.
func BenchmarkPredict(b *testing.B) {
	b.Run("from the cache", func(b *testing.B) {
		r, stop := benchRig(b)
		defer stop()
		r.predict(newQuery(7))
		b.ReportAllocs()
		q := newQuery(7)
		for b.Loop() {
			q.Received = time.Now()
			if a, err := one(context.Background(), r.p, q); err != nil || !a.Cached {
				b.Fatal(a, err)
			}
		}
	})
	for _, parallel := range []int{1, 64} {
		b.Run(fmt.Sprintf("by a replica, %d at once", parallel), func(b *testing.B) {
			r, stop := benchRig(b)
			defer stop()
			b.SetParallelism(parallel)
			b.ReportAllocs()
			b.ResetTimer()
			ask := func() {
				q := newQuery(7)
				q.NoCache = true
				if a, err := one(context.Background(), r.p, q); err != nil || a.Default {
					b.Error(a, err)
				}
			}
			if parallel == 1 {
				for b.Loop() {
					ask()
				}
				return
			}
			b.RunParallel(func(pb *testing.PB) {
				for pb.Next() {
					ask()
				}
			})
		})
	}
	b.Run("a batch of 64 by a replica", func(b *testing.B) {
		r, stop := benchRig(b)
		defer stop()
		qs := make([]serving.Query, 64)
		b.ReportAllocs()
		for b.Loop() {
			for i := range qs {
				qs[i] = *newQuery(float64(i))
				qs[i].NoCache = true
			}
			if _, err := r.p.Predict(context.Background(), qs...); err != nil {
				b.Fatal(err)
			}
		}
	})
}

// BenchmarkPredictByFour is one query that four models are asked for, and that waits
// for all of them.
func BenchmarkPredictByFour(b *testing.B) {
	for _, noCache := range []bool{false, true} {
		b.Run(map[bool]string{false: "from the cache", true: "by a replica"}[noCache], func(b *testing.B) {
			four := []serving.ModelID{a1, b1, c1, m1}
			r, stop := benchRig(b, four...)
			defer stop()
			r.links(func(a *serving.App) {
				a.SLO, a.Policy = serving.Duration(10*time.Second), serving.PolicySpec{Kind: serving.PolicyMean}
			}, four...)
			r.predict(newQuery(7))
			q := newQuery(7)
			q.NoCache = noCache
			b.ReportAllocs()
			for b.Loop() {
				q.Received = time.Now()
				if a, err := one(context.Background(), r.p, q); err != nil || a.Default || a.Missing != nil {
					b.Fatal(a, err)
				}
			}
		})
	}
}

// benchRig has one replica, over TCP, whose answers are made in advance: of model m, or
// of others.
func benchRig(b *testing.B, versions ...serving.ModelID) (*rig, func()) {
	if versions == nil {
		versions = []serving.ModelID{m1}
	}
	b.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(b, err)
	r, stop := newRig(b, func() {})
	r.table.Dial = func(ctx context.Context, _ string) (net.Conn, error) {
		var d net.Dialer
		return d.DialContext(ctx, "tcp", ln.Addr().String())
	}
	answer := number(7)
	r.all.Go(func() {
		nc, err := ln.Accept()
		if err != nil {
			return
		}
		conn, err := rpc.Accept(r.ctx, nc, rpc.Hello{Role: rpc.RoleSidecar, MaxFrame: rpc.MaxFrame}, nil)
		if err != nil {
			return
		}
		for i, v := range versions {
			_ = conn.Send(rpc.KindAnnounce, 0, rpc.AppendAnnounce(nil, rpc.Announcement{ID: uint32(i), State: rpc.StateReady, Model: v}))
		}
		_ = conn.Run(r.ctx, func(f rpc.Frame) error {
			p, err := rpc.ParsePredict(f)
			if err != nil {
				return err
			}
			reply := rpc.AppendReplyHead(conn.Begin(rpc.KindReply), rpc.ReplyHead{Batch: p.Batch, Count: 1})
			return conn.End(rpc.AppendAnswer(reply, &answer), 0)
		})
	})
	r.lists <- []serving.Endpoint{{Replica: "a", Addr: ln.Addr().String()}}
	r.serves(func(a *serving.App) { a.SLO = serving.Duration(10 * time.Second) }, m1)
	for _, v := range versions {
		r.ready(v, 1)
	}
	return r, func() { stop(); ln.Close() }
}
