package route

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/topsail-serving/topsail/rpc"
	"github.com/topsail-serving/topsail/serving"
)

func BenchmarkPick(b *testing.B) {
	for _, n := range []int{1, 2, 8, 64} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			g, now := standing(n), time.Now()
			b.ReportAllocs()
			for b.Loop() {
				g.Pick(0, nil, now)
			}
		})
	}
	b.Run("8, in parallel", func(b *testing.B) {
		g, now := standing(8), time.Now()
		b.ReportAllocs()
		b.RunParallel(func(pb *testing.PB) {
			for pb.Next() {
				g.Pick(0, nil, now)
			}
		})
	})
}

// BenchmarkAsk is one question and its reply over loopback TCP, alone and with 64
// in flight.
func BenchmarkAsk(b *testing.B) {
	for _, inFlight := range []int{1, 64} {
		b.Run(fmt.Sprint(inFlight), func(b *testing.B) {
			target, stop := loopback(b)
			defer stop()
			in := serving.Input{Type: serving.Doubles, Data: make([]byte, 104)}
			b.ReportAllocs()
			b.ResetTimer()
			var all sync.WaitGroup
			for g := range inFlight {
				all.Go(func() {
					w := &waiter{done: make(chan rpc.Status, 1)}
					for range b.N/inFlight + min(1, max(0, b.N%inFlight-g)) {
						if _, failure := target.Ask(w, &rpc.Ask{Budget: time.Minute}, in, time.Now()); failure != nil {
							b.Error(failure)
							return
						}
						<-w.done
					}
				})
			}
			all.Wait()
		})
	}
}
