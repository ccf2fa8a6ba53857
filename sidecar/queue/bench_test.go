package queue

import (
	"fmt"
	"testing"
	"time"

	"github.com/topsail-serving/topsail/test/require"
)

// BenchmarkPushForm pushes and takes a batch of 8 while depth others wait.
func BenchmarkPushForm(b *testing.B) {
	for _, depth := range []int{1, 128, 4096} {
		b.Run(fmt.Sprint(depth), func(b *testing.B) {
			bench(b, depth, func(i int) int { return depth + i })
		})
	}
}

// BenchmarkOutOfOrder pushes every other item before half of those that wait.
func BenchmarkOutOfOrder(b *testing.B) {
	for _, depth := range []int{128, 4096} {
		b.Run(fmt.Sprint(depth), func(b *testing.B) {
			bench(b, depth, func(i int) int { return i + depth/(1+i%2) })
		})
	}
}

func bench(b *testing.B, depth int, deadline func(i int) int) {
	const size = 8
	q := New(Limits{Items: 1 << 16, Bytes: 1 << 30}, anyone, nil)
	var batch Batch
	for i := range depth + size {
		q.Push(due(i))
	}
	line, now := linear(2, 0.1), epoch.Add(-time.Hour)
	i := 0
	b.ReportAllocs()
	for b.Loop() {
		form(q, &batch, now, size, 0, line)
		for _, it := range batch.Items {
			it.Deadline = epoch.Add(time.Duration(deadline(i)) * time.Millisecond)
			i++
			require.NoError(b, q.Push(it))
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(i), "ns/item")
}

// BenchmarkShared is BenchmarkPushForm with several apps, which all have items.
func BenchmarkShared(b *testing.B) {
	for _, apps := range []int{2, mostLanes} {
		b.Run(fmt.Sprint(apps), func(b *testing.B) {
			const size, depth = 64, 1024
			q := New(Limits{Items: 1 << 16, Bytes: 1 << 30}, anyone, nil)
			for i := range depth + size {
				q.Push(of(fmt.Sprint(i%apps), 1, i))
			}
			var batch Batch
			line := linear(2, 0.1)
			b.ReportAllocs()
			for b.Loop() {
				form(q, &batch, epoch.Add(-time.Hour), size, 0, line)
				for _, it := range batch.Items {
					require.NoError(b, q.Push(it))
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*size), "ns/item")
		})
	}
}
